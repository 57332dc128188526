#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rpmirror: its requests, output and exit codes, with a scripted daemon; init and meta without a
# daemon.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"

# shellcheck disable=SC2153 # set by CMakeLists.txt
tool=$RPMIRROR here=$(realpath "$(dirname "$0")")
logs=(out err requests)
export RPMIRROR_SOCKET=$work/socket

# expect CODE PATTERN ARGUMENTS...: the tool must end with that exit code, and print a text like
# PATTERN on standard output or error.
expect() {
	local want=$1 pattern=$2 got=0
	shift 2
	"$tool" "$@" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	cat out err >both
	[ -z "$pattern" ] || grep -qE -e "$pattern" both || fail "'$*' does not say '$pattern'"
}

asked() { # PATTERN: must be in the last request
	tail -n 1 requests | grep -qF -e "$1" || fail "the request does not have $1"
}

start_daemon() {
	rm -f "$RPMIRROR_SOCKET"
	mkfifo ready
	python3 "$here/tool_peer.py" "$RPMIRROR_SOCKET" >ready &
	started+=($!)
	read -r _ <ready
}

# status HEALTH COPY_OF_B [MORE]: sets the scripted daemon's answer to `status`.
status() {
	local insync=false
	[ "$2" != in-sync ] || insync=true
	cat >new <<-END
		{"schema":1,"sets":[{"set":"orders","health":"$1","epoch":7,"seq":3,"phase":"serving","primary":"a","pid":4711,"min_copies":1,"lonely":"none","lease_ms":5000,"register":{"kind":"etcd","members":3,"healthy":3},"members":[{"name":"a","slot":0,"path":"/pm/orders","local":true,"insync":true,"role":"primary","copy":"in-sync","link":"local","flow":"none","flush_p50_us":21,"flush_p99_us":60},{"name":"b","slot":1,"path":"/pm/orders","local":false,"insync":$insync,"role":"secondary","copy":"$2","link":"connected","flow":"replicating","behind":4096}]${3:-}}]}
	END
	mv new status.answer
}

test_help_names_every_command() {
	local command
	expect 0 'usage: rpmirror COMMAND' --help
	for command in init status events wait promote demote resync pause resume verify resolve member grow fence explain meta; do
		expect 0 "rpmirror $command" --help
		expect 0 "usage: rpmirror $command" $command --help
	done
	expect 0 '^rpmirror [0-9]' --version
}

test_wrong_command_lines_end_with_2() {
	expect 2 'a command is missing'
	expect 2 "no command 'fly'" fly
	expect 2 "no option '--nonsense'" status --nonsense
	expect 2 "'--timeout' needs a value" status --timeout
	expect 2 "'soon' is no value for --timeout" status --timeout soon
	expect 2 "'0' is no value for --timeout" status --timeout 0
	expect 2 'one argument too many' status a b
	expect 2 'an argument is missing' promote
	expect 2 '--discard' resolve s
	expect 2 'no size' grow s 5
	expect 2 'none of add' member paint s b
	expect 2 'no member' member add s b
	expect 2 '--until' wait s
	expect 2 "health never has the value 'helthy'" wait s --until health=helthy
	expect 2 'is no key' wait s --until copy=in-sync
	expect 2 'neither dump nor check' meta show /x
	expect 2 '"name":"usage"' status --json --nonsense
}

test_without_a_daemon_it_is_unreachable() {
	expect 3 'is rpmirrord running' status
	expect 3 '"code":3,"name":"unreachable"' promote s b --json
	expect 3 '^RPMIRROR UNKNOWN - cannot connect to .*; is rpmirrord running on this host\?$' status --check
	expect 3 '"name":"unreachable"' status --check --json
	! grep -q RPMIRROR out || fail "JSON and a line for people on standard output"
}

test_a_silent_daemon_is_waited_for_so_long() {
	start_daemon
	touch status.silent promote.close
	expect 8 'not answered in time' status --timeout 0.2
	expect 3 'closed by rpmirrord' promote s b
}

test_status_is_a_short_tree() {
	start_daemon
	status healthy in-sync
	expect 0 '^orders   healthy   epoch 7.3   primary a \(pid 4711\)   2 copies, register etcd 3 of 3: survives the loss of any one host$' status
	grep -qE '^  a  in-sync  primary +local  /pm/orders   flush p50 21us p99 60us$' out || fail "the line of a"
	grep -qE '^  b  in-sync  replicating +4096 B behind$' out || fail "the line of b"
	asked '"op":"status"'
	expect 0 '"schema":1' status orders --json
	asked '"set":"orders"'
	status degraded stale ',"reason":"b was silent for 2 s","next":"it is resynced when it returns"'
	expect 0 'does not survive the loss of its only in-sync copy' status
	grep -qx '  why: b was silent for 2 s' out || fail "no reason"
	grep -qx '  next: it is resynced when it returns' out || fail "no next step"
}

test_a_line_does_not_contradict_itself() {
	start_daemon
	# The member's daemon has not yet read the record by which the member was excluded or has
	# joined.
	status degraded in-sync
	sed -i 's/"insync":true,"role":"secondary"/"insync":false,"role":"secondary"/; s/"flow":"replicating"/"flow":"paused"/' status.answer
	expect 0 '^  b  excluded paused ' status
	! grep -q '^  b .*in-sync' out || fail "an excluded copy is called in-sync"
	expect 0 'The copy of b was equal when it was excluded; flushes are acknowledged without it' explain
	status healthy in-sync
	sed -i 's/"copy":"in-sync","link":"connected"/"copy":"syncing","link":"connected"/' status.answer
	expect 0 '^  b  in-sync  replicating' status
	! grep -qE 'syncing|behind' out || fail "a member that counts is called behind"
	# The report of b's host after the primary's host has failed.
	status degraded in-sync
	sed -i 's/"local":true,"insync":true,"role":"primary","copy":"in-sync","link":"local"/"local":false,"insync":true,"role":"primary","copy":"unknown","link":"down"/' status.answer
	expect 0 ': 1 of its in-sync copies is not reached from here; without it: does not survive the loss of its only in-sync copy$' status
	expect 0 'of at least 1 it is in this state: 1 of its in-sync copies is not reached' explain
}

test_what_came_from_elsewhere_cannot_control_a_terminal() {
	start_daemon
	status 'heal\u001b[2Jthy' in-sync ',"reason":"\u0007bell"'
	expect 0 'heal\?\[2Jthy' status
	! grep -q $'[\a\e]' out || fail "a control character"
	status healthy in-sync ',"waiting":[{"what":"\u001bx","why":"\u001by"}]'
	expect 0 '\?x, because \?y' explain
}

test_check_is_a_monitoring_plugin() {
	start_daemon
	status healthy in-sync ',"slow_ms":20,"blocked_s":1.5'
	expect 0 "^RPMIRROR OK - orders healthy, 2 of 2 copies in-sync \\| 'orders.insync'=2;2:;1:;0;2 'orders.behind'=4096B;;;0 'orders.flush_p99'=0.000060s;0.020;;0 'orders.blocked'=1.5s;;;0$" status --check
	[ "$(wc -l <out)" = 1 ] && [ ! -s err ] || fail "not one line"
	status degraded syncing ',"progressing":true,"reason":"b is | away"'
	expect 1 '^RPMIRROR WARNING - orders degraded, 1 of 2 copies in-sync: b is / away \|' status --check
	status degraded stale ',"progressing":false'
	expect 1 '^RPMIRROR WARNING - orders degraded, 1 of 2 copies in-sync, no progress \|' status --check
	local health
	for health in blocked split down; do
		status $health stale ',"reason":"it is so"'
		expect 2 "^RPMIRROR CRITICAL - orders $health, 1 of 2 copies in-sync: it is so \\|" status --check
	done
	expect 2 '"health":"down"' status --check --json
	echo '{"schema":1,"sets":[]}' >status.answer
	expect 3 '^RPMIRROR UNKNOWN - this host has no set$' status --check
	echo '{"schema":1,"sets":[{"set":"x","health":"degraded"},{"set":"y","health":"healthy"}]}' >status.answer
	expect 1 '^RPMIRROR WARNING - x degraded, .*; y healthy, ' status --check
	echo '{"ok":false,"error":{"code":2,"name":"config","message":"no such set"}}' >status.answer
	expect 3 '^RPMIRROR UNKNOWN - no such set$' status others --check
	expect 3 "no option '--nonsense'" status --check --nonsense
	expect 3 'do not go together' status --check --openmetrics
	rm status.answer
	touch status.silent
	expect 3 '^RPMIRROR UNKNOWN - rpmirrord has not answered in time' status --check --timeout 0.2
}

test_metrics_are_those_of_the_status() {
	start_daemon
	status degraded syncing ',"size":4194304,"slow_ms":20,"blocked_s":1.5,"events":{"lost":3},"removed":true,"findings":{"more":1,"ranges":[{"length":4096}]}'
	sed -i 's/"etcd",/"etcd","answers":true,/; s/"flow":"none"/"flow":"none","flushes":12,"acked":11/; s/"behind":4096/"behind":4096,"rate":7,"refusal":"secret"/' status.answer
	expect 0 '^# EOF$' status orders --openmetrics
	asked '"set":"orders"'
	local line
	while read -r line; do
		grep -qxF -e "$line" out || fail "no line $line"
	done <<-'END'
		rpmirror_up 1
		rpmirror_sets 1
		# TYPE rpmirror_set_health gauge
		rpmirror_set_health{set="orders",health="degraded"} 1
		rpmirror_set_health{set="orders",health="healthy"} 0
		rpmirror_set_removed{set="orders"} 1
		rpmirror_set_epoch{set="orders"} 7
		# UNIT rpmirror_set_size_bytes bytes
		rpmirror_set_size_bytes{set="orders"} 4194304
		rpmirror_set_members{set="orders"} 2
		rpmirror_set_insync_members{set="orders"} 1
		rpmirror_set_slow_threshold_seconds{set="orders"} 0.02
		# TYPE rpmirror_set_blocked_seconds counter
		rpmirror_set_blocked_seconds_total{set="orders"} 1.5
		rpmirror_events_total{set="orders",what="lost"} 3
		rpmirror_set_findings_bytes{set="orders"} 4097
		rpmirror_register_reachable{set="orders"} 1
		rpmirror_register_healthy_members{set="orders"} 3
		rpmirror_copy_state{set="orders",member="b",state="syncing"} 1
		rpmirror_copy_state{set="orders",member="b",state="in-sync"} 0
		rpmirror_copy_refused{set="orders",member="b",reason="secret"} 1
		rpmirror_copy_refused{set="orders",member="a",reason="secret"} 0
		rpmirror_copy_primary{set="orders",member="a"} 1
		rpmirror_copy_behind_bytes{set="orders",member="b"} 4096
		rpmirror_copy_resync_bytes_per_second{set="orders",member="b"} 7
		rpmirror_flushes_total{set="orders",member="a"} 12
		rpmirror_flush_latency_seconds{set="orders",member="a",quantile="0.99"} 6e-05
	END
	! grep -q 'flush_latency_seconds{set="orders",member="b"' out || fail "a time of flushes that b does not make"
	sed -i "s|/pm/orders|$work|" status.answer
	expect 0 '' status --textfile metrics.prom
	[ ! -s out ] && [ "$(stat -c %a metrics.prom)" = 644 ] || fail "not a file for every reader"
	grep -qx '# TYPE rpmirror_flushes_total counter' metrics.prom || fail "no classic name"
	grep -q '^rpmirror_copy_filesystem_avail_bytes{set="orders",member="a"} [1-9]' metrics.prom || fail "no room"
	! grep -q EOF metrics.prom || fail "the collector knows no EOF"
	! grep -q '^rpmirror_copy_filesystem_avail_bytes{set="orders",member="b"}' metrics.prom || fail "the room of another host"
	if command -v promtool >/dev/null; then
		promtool check metrics <metrics.prom >lint 2>&1 || fail "promtool: $(cat lint)"
	fi
	touch status.close
	expect 3 'closed by rpmirrord' status --textfile metrics.prom
	grep -qx 'rpmirror_up 0' metrics.prom && ! grep -q rpmirror_sets metrics.prom || fail "not known as down"
	[ "$(ls metrics*)" = metrics.prom ] || fail "something is left: $(ls)"
	rm status.close
	expect 9 'cannot create /nowhere/x' status --textfile /nowhere/x
}

test_names_in_metrics_are_escaped() {
	start_daemon
	status 'healthy' in-sync ',"events":{"a\"b\\\u000ac":1}'
	expect 0 '^rpmirror_events_total\{set="orders",what="a\\"b\\\\\\nc"\} 1$' status --openmetrics
}

test_what_if_tells_the_outcome() {
	start_daemon
	status healthy in-sync
	expect 0 'orders without b: a goes on with 1 in-sync copy' status --what-if lost=b
	expect 0 'b can take over after the lease of 5.0 s, with 1 in-sync copy' status --what-if lost=a
	expect 0 'no in-sync copy is left' status --what-if lost=a,b
	expect 0 '"outcome":"fails-over"' status --what-if lost=a --json
	expect 1 "no member 'z'" status --what-if lost=z
	expect 2 'lost=MEMBER' status --what-if gone=a
	status degraded stale
	expect 0 'nothing changes' status --what-if lost=b
	status healthy in-sync
	sed -i 's/"min_copies":1/"min_copies":2/' status.answer
	expect 0 'flushes block: 1 copy is left, min_copies is 2' status --what-if lost=a
	sed -i 's/"min_copies":2/"min_copies":1/; s/"members":3,"healthy":3/"answers":true/' status.answer
	expect 0 '2 copies, register etcd: survives the loss of any one host' status
	sed -i 's/"answers":true/"answers":false/' status.answer
	expect 0 'the register cannot be asked' status
	expect 0 '"outcome":"blocks"' status --what-if lost=b --json
}

test_errors_of_the_daemon_are_exit_codes() {
	local code
	start_daemon
	for code in 1 2 3 4 5 6 7 8 9 10; do
		echo "{\"ok\":false,\"error\":{\"code\":$code,\"name\":\"x\",\"message\":\"it is so\",\"hint\":\"do that\"}}" >promote.answer
		expect $code 'rpmirror promote: it is so; do that' promote orders b
		expect $code "\"code\":$code,.*\"message\":\"it is so\",\"hint\":\"do that\"" promote orders b --json
	done
	# The tool uses the error's name, because an earlier build has other numbers.
	echo '{"ok":false,"error":{"code":2,"name":"config","message":"no such set"}}' >promote.answer
	expect 1 'no such set' promote orders b
	echo 'not JSON' >promote.answer
	expect 3 'does not answer as rpmirrord' promote orders b
	echo '{"ok":false,"error":{"code":99}}' >promote.answer
	expect 3 'without a reason' promote orders b
}

test_requests_are_as_agreed() {
	start_daemon
	status healthy in-sync
	expect 0 promoted promote orders b
	asked '"force":false'
	asked '"member":"b"'
	asked '"op":"promote"'
	asked '"set":"orders"'
	asked '"timeout_ms":10000'
	expect 0 'by force' promote --force b --timeout 3
	asked '"force":true'
	asked '"set":"orders"' # the only set
	asked '"timeout_ms":3000'
	expect 0 demoted demote orders
	asked '"op":"demote"'
	expect 0 begun resync orders b --full --from a
	asked '"full":true'
	asked '"from":"a"'
	expect 0 '' pause b
	asked '"op":"pause"'
	expect 0 '' resume b
	asked '"op":"resume"'
	expect 0 '' fence orders b
	asked '"op":"fence"'
	expect 0 '' resolve orders --discard b
	asked '"discard":"b"'
	expect 0 '' grow orders 16G
	asked '"size":17179869184'
	expect 0 '' member add orders 'c=10.0.0.3:/pm/c'
	asked '"member":{"name":"c","host":"10.0.0.3","port":7650,"path":"/pm/c"}'
	asked '"op":"member-add"'
	expect 0 '' member remove c
	asked '"member":"c"'
	asked '"op":"member-remove"'
	expect 0 '' member replace orders b
	asked '"member":{"name":"b"}'
	expect 0 '' member replace orders 'b=[fe80::1]:99:/pm/new'
	asked '"member":{"name":"b","host":"fe80::1","port":99,"path":"/pm/new"}'
}

test_verify_shows_what_differs() {
	start_daemon
	echo '{"ok":true,"compared":8192,"different":0,"ranges":[]}' >verify.answer
	expect 0 'compared 8192 bytes, 0 differ' verify orders
	asked '"repair":false'
	rm verify.answer
	expect 0 'the copies are equal' verify orders
	echo '{"ok":true,"compared":8192,"different":4096,"ranges":[[4096,4096]]}' >verify.answer
	expect 5 'offset 4096 length 4096' verify orders --repair --rate 1M --member b
	asked '"rate":1048576'
	asked '"member":"b"'
}

test_wait_ends_when_it_holds() {
	start_daemon
	status degraded syncing
	"$tool" wait orders --until 'health=healthy,copy.b=in-sync|stale,insync.b=yes,role.a=primary' --timeout 60 &
	started+=($!)
	wait_until 20 test -s requests || fail "it does not ask"
	is_gone $! && fail "it does not wait"
	status healthy in-sync
	wait $! || fail "it does not see the change"
	expect 8 'health is healthy and not down' wait orders --until health=down --timeout 0.3
	expect 8 'copy.z is no such member' wait orders --until copy.z=stale --timeout 0.2
	expect 0 '' wait orders --until 'primary=a,phase=serving,link.a=local,flow.b=replicating'
}

test_events_are_printed_as_they_come() {
	start_daemon
	cat >events.answer <<-'END'
		{"event":{"time":"2026-11-22T22:10:00.123Z","kind":"exists","object":"set","set":"orders","state":{}}}
		{"event":{"time":"2026-11-22T22:10:00.123Z","kind":"dumped"}}
		{"event":{"time":"2026-11-22T22:10:01.000Z","kind":"change","object":"member","set":"orders","member":"b","what":"copy","from":"stale","to":"syncing","text":"a resync has begun"}}
	END
	"$tool" events orders >follow 2>err &
	started+=($!)
	wait_until 20 grep -q 'change orders/b copy stale -> syncing: a resync has begun' follow || fail "no change"
	expect 0 'exists orders' events --now
	asked '"now":true'
	expect 0 '"what":"copy"|"kind":"dumped"' events --now --json
}

test_explain_has_sentences() {
	start_daemon
	status degraded stale ',"reason":"b left","waiting":[{"what":"a resync of b","why":"its host is down","deadline_ms":1500,"retry_ms":500}]'
	expect 0 'Waiting: a resync of b, because its host is down; for 1.5 s more; the next attempt is in 0.5 s.' explain orders
	grep -q 'Member a is primary of epoch 7 and serves.' out || fail "no primary"
	grep -q 'The copy of b is consistent, but lacks data' out || fail "no copy"
	grep -q 'can be promoted only by force' out || fail "no rule"
	grep -q ' Its link is connected\.$' out || fail "no link"
	sed -i 's/"link":"connected"/"link":"connected","reason":"an operator keeps it away"/' status.answer
	expect 0 ' Its link is connected. Reason: an operator keeps it away\.$' explain orders
	sed -i 's/"link":"connected","reason":"[^"]*"/"link":"down","reason":"it does not answer"/' status.answer
	expect 0 ' Its link is down: it does not answer\.$' explain orders
}

# ---- without a daemon ----

test_init_makes_what_is_here() {
	expect 0 'survives|stops' init orders --size 4M --member "a=127.0.0.1:$work/a" --member "b=127.0.0.2:$work/b" \
		--register "file:$work/register" --lonely block
	grep -q '2 in-sync copies' out || fail "not two copies"
	grep -qx 'member = b' out || fail "no advice for b"
	! grep -q 'auto = yes' out || fail "a register in a file decides nothing by itself"
	[ "$(stat -c %s a)" = 4194304 ] || fail "the size of a"
	grep -q '"insync":\[0,1\]' register || fail "the register"
	expect 0 'are whole' meta check a
	expect 0 'slot 1' meta check b.rpmirror
	expect 1 'in the register already' init orders --size 4M --member "a=127.0.0.1:$work/c" \
		--register "file:$work/register" --lonely block
	[ ! -e c ] || fail "a copy without a record"
}

test_init_takes_the_settings_of_a_set() {
	expect 0 '' init s --size 4M --member "a=127.0.0.1:$work/a" --register "file:$work/r" --lonely manual --lease 3 \
		--replica-timeout 1.5 --slow 0.1 --holdoff 2 --blocked 7 --local-error continue --hot-extents 17 --address 0x200000000000
	for setting in '"lease_ms":3000' '"replica_timeout_ms":1500' '"slow_ms":100' '"holdoff_ms":2000' '"blocked_ms":7000' \
		'"local_error_continues":true' '"address":"0000200000000000"'; do
		grep -q "$setting" r || fail "no $setting"
	done
	expect 0 'hot_slots: 17' meta dump a
	expect 0 '' init s --size 4M --member "a=127.0.0.1:$work/b" --register "file:$work/r2" --lonely manual --blocked-for-ever
	grep -q '"blocked_ms":4294967295' r2 && grep -q '"local_error_continues":false' r2 || fail "not for ever"
	expect 2 "stop or continue, and not 'ignore'" init s --size 4M --member "a=127.0.0.1:$work/c" --register "file:$work/r3" \
		--lonely manual --local-error ignore
	expect 2 "multiple of 0x1000, and not '0x10f'" init s --size 4M --member "a=127.0.0.1:$work/c" --register "file:$work/r3" \
		--lonely manual --address 0x10f
	expect 2 'at most 8192' init s --size 4M --member "a=127.0.0.1:$work/c" --register "file:$work/r3" --lonely manual --hot-extents 8193
}

test_init_does_not_guess() {
	expect 2 'choose --lonely=block' init s --size 4M --member "a=127.0.0.1:$work/a" --register "file:$work/r"
	expect 2 'choose --lonely=block' init s --size 4M --member "a=127.0.0.1:$work/a" --register "file:$work/r" --lonely none
	expect 2 'the register decides' init s --size 4M --member "a=127.0.0.1:$work/a" --register etcd://127.0.0.1:1 --lonely block
	expect 2 'no member.s host is this machine' init s --size 4M --member "a=192.0.2.7:$work/a" --register "file:$work/r" --lonely block
	expect 2 '1 to 8 members' init s --size 4M --register "file:$work/r" --lonely block
	expect 2 'state the size of the file' init s --member "a=127.0.0.1:$work/a" --register "file:$work/r" --lonely block
	expect 2 "two members 'a'" init s --size 4M --member "a=h:/x" --member "a=h:/y" --register "file:$work/r" --lonely block
	expect 2 'min_copies' init s --size 4M --member "a=127.0.0.1:/x" --min-copies 2 --register "file:$work/r" --lonely block
	expect 2 'multiple of 4 KiB' init s --size 5000 --member "a=127.0.0.1:/x" --register "file:$work/r" --lonely block
	expect 9 'cannot read the secret' init s --size 4M --member "a=127.0.0.1:$work/a" --register "file:$work/r" --lonely block --secret /nowhere
	expect 3 'no answer' init s --size 4M --member "a=127.0.0.1:$work/a" --register etcd://127.0.0.1:1 --timeout 0.2
	[ ! -e a ] && [ ! -e r ] || fail "something was made"
}

test_init_leaves_nothing_when_it_fails() {
	echo mine >b
	expect 9 'File exists' init s --size 4M --member "a=127.0.0.1:$work/a" --member "b=127.0.0.1:$work/b" \
		--register "file:$work/r" --lonely block
	[ ! -e a ] && [ ! -e a.rpmirror ] && [ ! -e b.rpmirror ] || fail "files are left"
	[ "$(cat b)" = mine ] || fail "a file of somebody else"
	mkdir full
	expect 9 '' init s --size 60T --member "a=127.0.0.1:$work/full/a" --register "file:$work/r" --lonely block
	[ -z "$(ls full)" ] || fail "files are left"
}

test_init_begins_with_a_file_that_exists() {
	head -c 1M /dev/urandom >a
	cp a before
	expect 9 'a file of 2097152 bytes' init s --size 2M --member "a=127.0.0.1:$work/a" --from a --register "file:$work/r" --lonely manual
	expect 0 '1 in-sync copy' init s --size 1M --member "a=127.0.0.1:$work/a" --member "b=127.0.0.1:$work/b" --from a \
		--register "file:$work/r" --lonely manual
	cmp a before || fail "the content has changed"
	grep -q '"insync":\[0\]' r || fail "the register"
	"$tool" meta dump b --json | grep -q '"flags":\["empty"\]' || fail "b is not empty"
	"$tool" meta dump a --json | grep -q '"flags":\["clean"\]' || fail "a is not clean"
}

test_a_copy_joins_later() {
	expect 0 '1 in-sync copy.*once all 2' init s --size 1M --member "a=127.0.0.1:$work/a" --member "b=192.0.2.7:$work/b" \
		--register "file:$work/r" --lonely manual
	[ ! -e b ] || fail "b's host is another one"
	expect 1 "no member 'z'" init s --join z --register "file:$work/r"
	expect 1 'counts as in-sync' init s --join a --register "file:$work/r"
	expect 0 'the copy of b is made' init s --join b --register "file:$work/r"
	"$tool" meta dump b --json | grep -q '"flags":\["empty"\]' || fail "b is not empty"
	expect 1 "that of set 's'" init other --join b --register "file:$work/r"
}

test_damaged_metadata_are_named() {
	expect 0 '' init s --size 1M --member "a=127.0.0.1:$work/a" --register "file:$work/r" --lonely manual
	# Damages both slots of the table of members.
	printf 'xxxxxxxx' | dd of=a.rpmirror bs=1 seek=$((0x5020)) conv=notrunc status=none
	printf 'xxxxxxxx' | dd of=a.rpmirror bs=1 seek=$((0x5820)) conv=notrunc status=none
	expect 9 'damaged: members' meta check a
	expect 0 'damage: members' meta dump a
	truncate -s 0 a.rpmirror
	expect 1 'no metadata file' meta check a
	head -c 64K /dev/urandom >a.rpmirror
	expect 9 '' meta check a
	expect 9 'No such file' meta check nowhere
}

test_a_truncated_data_file_is_a_defect() {
	expect 0 '' init s --size 1M --member "a=127.0.0.1:$work/a" --register "file:$work/r" --lonely manual
	truncate -s 512K a
	expect 9 'defect: the data file has 524288 bytes and the set 1048576' meta check a
	expect 9 'has 524288 bytes' meta check a --json
	python3 -c 'import json; assert json.load(open("out"))["ok"] is False'
	rm a
	expect 9 'no data file' meta check a
	expect 0 'set: s' meta dump a
}

test_init_in_etcd() {
	local uri
	mkfifo etcd_in etcd_out
	"$SYSTEM_ETCD" 1 <etcd_in >etcd_out 2>etcd.log &
	local pid=$!
	started+=("$pid")
	logs+=(etcd.log)
	exec 5>etcd_in
	read -r uri _ <etcd_out || { # 77: etcd is not installed
		wait $pid || exit $?
	}
	expect 0 'but not of a host of the register' init orders --size 4M --member "a=127.0.0.1:$work/a" --member "b=127.0.0.2:$work/b" \
		--register "$uri" --timeout 60
	[ "$(grep -cx 'auto = yes' out)" = 2 ] || fail "what init prints does not survive by itself"
	expect 1 'in the register already' init orders --size 4M --member "a=127.0.0.1:$work/c" --register "$uri" --timeout 60
	expect 1 'counts as in-sync' init orders --join a --register "$uri" --timeout 60
	exec 5>&-
	wait $pid || fail "etcd does not end"
}

"test_$1"
