#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rpmirror with real daemons of two or three hosts.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
# shellcheck source=tests/system/mirror/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2153 # set by CMakeLists.txt
tool=$RPMIRROR app=$MIRROR_APP
logs+=(out err)

# on HOST CODE PATTERN ARGUMENTS...: runs the tool with this host's daemon; the exit code and the
# output must be these.
on() {
	local host=$1 want=$2 pattern=$3 got=0
	shift 3
	"$tool" "$@" --timeout 60 --socket "${sockets[host]}" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	cat out err >both
	[ -z "$pattern" ] || grep -qE -e "$pattern" both || fail "'$*' does not say '$pattern'"
}

# map_on HOST HOW: starts an application on that host, which executes the commands of tell().
map_on() { # HOST HOW
	# the close of descriptor 5 ends etcd, so the application must not inherit it
	coproc APP { RPMIRROR_SOCKET=${sockets[$1]} exec "$app" 2>app.log 5>&-; }
	started+=("$APP_PID")
	tell "$2"
}

map_on_first() {
	map_on 0 map
}

# spoil HOST: overwrites the beginning of the block at 8192 with other bytes.
spoil() { # HOST
	printf edited | dd of="${files[$1]}" bs=1 seek=8200 conv=notrunc status=none
}

# The repair fails while a scrub is under way; the caller then repeats the call.
is_repaired() {
	local got=0
	"$tool" verify orders --repair --socket "${sockets[0]}" >out 2>err || got=$?
	[ $got = 5 ]
}

map_is_refused() { # HOST PATTERN
	echo map | RPMIRROR_SOCKET=${sockets[$1]} "$app" >refused 2>err
	grep -q "$2" refused || fail "host $1: $(cat refused)"
}

tell() { # COMMAND: the answer, $answer, must be ok or the result of a flush
	local line
	echo "$*" >&"${APP[1]}"
	read -r -t 60 line <&"${APP[0]}" || fail "no answer to '$*'"
	[[ ${line%% *} == @(ok|durable) ]] || fail "'$*': $line"
	answer=$line
}

# is_shown TEXT [WORDS...]: succeeds if the status contains the text.
is_shown() {
	"$tool" status "${@:2}" --socket "${sockets[0]}" >out 2>err && grep -q "$1" out
}

is_said() { # HOST TEXT
	"$tool" status --socket "${sockets[$1]}" >out 2>err && grep -q "$2" out
}

is_down_or_blocked() { # HOST
	local got=0
	"$tool" status --check --socket "${sockets[$1]}" >out 2>err || got=$?
	[ $got = 2 ]
}

# The daemons start before the set is registered. They refuse requests that need the register until
# they have read it.
await_register() {
	local host
	for host in "${!sockets[@]}"; do
		on "$host" 0 '' wait orders --until phase=none
	done
}

is_removed() { # MEMBER
	"$tool" member remove orders "$1" --timeout 60 --socket "${sockets[0]}" >out 2>err
}

test_it_shows_what_the_daemons_know() {
	export MIRROR_HOSTS_MORE=$'scrub = 1s\nscrub-rate = 100\n'
	hosts_begin 2
	await_register
	on 0 0 'orders   down   epoch 0' status
	on 0 2 '' status --check
	map_on_first
	on 0 0 '' wait orders --until health=healthy,primary=a,copy.a=in-sync,copy.b=in-sync,link.b=connected
	on 1 0 '' wait orders --until health=healthy,primary=a,role.a=primary,copy.b=in-sync,link.b=local
	on 0 0 'orders   healthy   epoch 1.*primary a' status orders
	on 0 0 '' status --check
	on 0 0 '"schema":1' status --json
	on 0 0 '^rpmirror_events_total\{set="orders",what="epoch"\} 1$' status --openmetrics
	grep -qE '^rpmirror_flushes_total\{set="orders",member="a"\} [0-9]+$' out || fail "no flushes"
	on 1 0 '^rpmirror_copy_state\{set="orders",member="a",state="in-sync"\} 1$' status --openmetrics
	on 0 0 'exists orders/b' events --now
	on 0 0 'Member a is primary of epoch 1 and serves' explain
	on 1 0 '' status --what-if lost=a
	on 0 1 "no copy of set 'others'" status others
	# A reader on the other host gets the greatest age of its copy, and the number of the copy's
	# last flush.
	tell put 64 1
	printf 'map-readonly\nget 64\nstate\nstate\n' | RPMIRROR_SOCKET=${sockets[1]} "$app" >reader 2>err
	grep -qx 1 reader || fail "the reader does not see what was flushed: $(cat reader)"
	grep -q 'epoch 1 .*role 0 .*age 1 flush 1' reader || fail "the reader's state is $(cat reader)"
	# The scrub compares copies, none of which counts as right. With only two copies an operator
	# decides which copy is right.
	wait_until 60 is_shown 'last scrub .*: 8388608 bytes, 0 differed' || fail "no scrub"
	spoil 1
	wait_until 60 is_shown 'last scrub .*: 8388608 bytes, 4096 differed' || fail "the scrub finds nothing"
	on 0 0 '' wait orders --until health=degraded,insync.b=yes
	on 0 0 'offset 8192 length 4096 differs at b: no majority' status
	on 0 0 'decide which copy counts' explain
	on 1 0 '' wait orders --until health=degraded
	on 1 0 'the host of a shows more' explain
	cmp -s "${files[0]}" "${files[1]}" && fail "the scrub decides which copy is right"
	wait_until 30 is_repaired || fail "verify --repair is refused"
	cmp "${files[0]}" "${files[1]}" || fail "the operator's word does not count"
	on 0 0 '' wait orders --until health=healthy
	on 1 0 '' wait orders --until health=healthy
	wait_until 60 is_shown 'last scrub .*: 8388608 bytes, 0 differed' || fail "no further scrub"
	tell unmap
	on 1 0 '' wait orders --until phase=none,primary=none
	is_shown 'last scrub' || fail "the last scrub is forgotten"
	"$tool" meta dump "${files[0]}" --json | grep -q '"compared": *8388608' || fail "it is not recorded"
	hosts_end
}

test_it_refuses_what_the_set_does_not_permit() {
	hosts_begin 2
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	on 1 1 'no process on this host waits' promote orders b
	on 0 1 'another host' promote orders b
	on 0 1 "no member 'z'" promote orders z
	on 0 1 'no such member' member remove orders z
	on 0 10 'the primary must be demoted first' member remove orders a
	on 0 0 'epoch 1' status
	hosts_end
}

test_orders_are_carried_out() {
	hosts_begin 3
	"$tool" events orders --socket "${sockets[0]}" >events 2>err &
	started+=("$!")
	await_register
	on 0 1 'has no primary' pause orders c
	map_on_first
	on 0 0 '' wait orders --until health=healthy,copy.b=in-sync,flow.b=replicating,flow.c=replicating,link.c=connected
	tell put 8 1
	on 0 0 'b +in-sync +replicating +0 B behind' status orders
	on 1 1 'on another host' resync orders c
	on 0 2 "is the primary, which is the source" resync orders a
	# An in-sync copy has all data.
	on 0 0 'lacks nothing' resync orders c
	on 0 2 "is in-sync: there is no resync" pause orders c
	on 0 2 "source of every resync, and 'b' is not the primary" resync orders c --from b
	# The excluded member must stay excluded.
	on 0 0 'excluded until' fence orders c
	on 0 0 '' wait orders --until health=degraded,insync.c=no,flow.c=paused
	on 0 0 'an operator keeps it away' explain orders
	tell put 4096 2
	wait_until 30 is_shown 'c .* paused  *4096 B behind' || fail "what c lacks is not counted"
	on 0 0 'goes on' resume orders c
	on 0 0 '' wait orders --until health=healthy,insync.c=yes,flow.c=replicating
	cmp "${files[0]}" "${files[2]}" || fail "the copies differ"
	# The resync must compare the whole copy.
	on 0 0 'resync has begun' resync orders c --full --from a
	on 0 0 '' wait orders --until health=healthy,insync.c=yes
	grep -q 'change orders/c insync yes -> no' events || fail "no event of the exclusion"
	# A copy was edited while its daemon did not run.
	on 0 0 'compared 16777216 bytes, 0 differ' verify orders
	printf edited | dd of="${files[1]}" bs=1 seek=8200 conv=notrunc status=none
	on 0 5 'compared 8388608 bytes, 4096 differ' verify orders --member b
	grep -q 'member b offset 8192 length 4096' out || fail "the range is not named"
	on 0 0 'compared 8388608 bytes, 0 differ' verify orders --member c --rate 64M
	on 0 0 'b +in-sync +replicating' status orders
	printf edited | dd of="${files[2]}" bs=1 seek=8384512 conv=notrunc status=none
	on 0 5 'compared 16777216 bytes, 8192 differ' verify orders --repair
	on 0 0 '' wait orders --until health=healthy
	on 0 0 'compared 16777216 bytes, 0 differ' verify orders
	cmp "${files[0]}" "${files[1]}" || fail "b is not repaired"
	cmp "${files[0]}" "${files[2]}" || fail "c is not repaired"
	grep -q 'change orders/b verify: the copies were compared' events || fail "no event of the difference"
	on 0 5 'is not in-sync, or is the primary' verify orders --member a
	# A stopped process counts as not healthy.
	kill -STOP "$APP_PID"
	wait_until 30 is_shown 'has not reported for some seconds' || fail "it is taken for healthy"
	on 0 2 '' status --check
	wait_until 30 is_down_or_blocked 1 || fail "b takes it for healthy"
	kill -CONT "$APP_PID"
	on 0 0 '' wait orders --until health=healthy
	on 0 0 '^rpmirror_set_blocked_seconds_total.* [0-9.]*[1-9]' status --openmetrics
	grep -q 'change orders/a stuck.*has not reported' events || fail "no event of the stopped process"
	# The settings of this set require at least two copies.
	on 0 0 '' fence orders c
	on 0 0 '' fence orders b
	on 0 0 '' wait orders --until insync.b=no,insync.c=no
	on 0 0 '' resume orders c
	on 0 0 '' resync orders b
	on 0 0 '' wait orders --until health=healthy
	hosts_ask kill 2 >answer
	on 0 0 '' wait orders --until health=degraded,insync.c=no
	grep -q 'change orders/c lost: c (' events || fail "no event of the loss"
	on 0 0 'demoted' demote orders
	on 0 0 '' wait orders --until phase=none
	hosts_end
}

# The primary's disk does not return the acknowledged bytes; the copies on b and c have the
# acknowledged bytes.
test_a_scrub_does_not_spread_bit_rot() {
	export MIRROR_HOSTS_MORE=$'scrub = 1s\n'
	hosts_begin 3
	"$tool" events orders --socket "${sockets[0]}" >events 2>err &
	started+=("$!")
	await_register
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	tell put 8192 7
	cp "${files[1]}" good
	spoil 0
	# A healthy set is not enough for the test to continue, because a slow member can be absent
	# for a moment.
	wait_until 20 is_shown 'offset 8192 length 4096 differs at b c: the primary.s copy differs' ||
		fail "what differs is not shown: $("$tool" status --socket "${sockets[0]}")"
	on 0 0 '' wait orders --until health=degraded
	on 0 0 'a majority of the copies agrees, but the primary' explain
	on 1 0 '' wait orders --until health=degraded
	grep -q 'the primary.s copy is the one that differs' events || fail "no event says so"
	# The difference is recorded, so this copy is not promoted while the other copies are right.
	hosts_ask stop 0 >answer
	hosts_ask start 0 >answer
	on 0 0 '' wait orders --until health=degraded
	cmp good "${files[1]}" || fail "b is overwritten"
	cmp good "${files[2]}" || fail "c is overwritten"
	kill -9 "$APP_PID"
	on 0 0 '' wait orders --until health=down
	map_is_refused 0 'differs from the others'
	# With b as the primary, two of the three copies differ from a's copy.
	on 1 0 '' wait orders --until health=down
	map_on 1 map
	on 1 0 '' wait orders --until health=healthy,primary=b,insync.a=yes
	on 0 0 '' wait orders --until health=healthy
	cmp good "${files[0]}" || fail "a is not repaired"
	is_shown differs && fail "what was mended is still shown"
	hosts_end
}

test_a_copy_that_verify_names_is_not_promoted() {
	hosts_begin 3
	await_register
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	spoil 2
	on 0 5 'member c offset 8192 length 4096' verify orders
	on 0 0 '' wait orders --until health=degraded,insync.c=no,flow.c=paused
	on 0 0 'offset 8192 length 4096 differs at c: a majority agrees with the primary' status
	on 0 0 'its copy differs from the other copies' explain
	cmp -s "${files[0]}" "${files[2]}" && fail "verify repairs unasked"
	map_is_refused 2 'lacks acknowledged data'
	on 0 0 '' resume orders c
	on 0 0 '' wait orders --until health=healthy
	cmp "${files[0]}" "${files[2]}" || fail "c is not repaired"
	on 0 0 '' wait orders --until health=healthy
	is_shown differs && fail "what was mended is still shown"
	hosts_end
}

test_what_differs_is_said_beside_an_exclusion() {
	hosts_begin 3
	await_register
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	spoil 0
	on 0 5 'member c offset 8192 length 4096' verify orders
	hosts_ask kill 2 >answer
	on 0 0 '' wait orders --until insync.c=no
	on 0 0 'is not in-sync; and .* a majority of the copies agrees, but the primary' explain
	# Differences of a replaced copy are not reported for the new copy.
	is_shown 'differs at b c:' || fail "c is not named"
	on 0 0 'replaced' member replace orders c
	wait_until 30 is_shown 'differs at b:' || fail "what a former copy had is said of the new one"
	hosts_end
}

# spoil_metadata HOST: damages both superblocks of the host's copy.
spoil_metadata() { # HOST
	hosts_ask kill "$1" >answer
	dd if=/dev/zero of="${files[$1]}.rpmirror" bs=4096 count=2 conv=notrunc status=none
	hosts_ask start "$1" >answer
}

test_it_says_what_to_do_where_a_copy_cannot_be_opened() {
	hosts_begin 2
	await_register
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	spoil_metadata 1
	on 0 0 '' wait orders --until insync.b=no
	wait_until 30 is_shown 'next: .*rpmirror member replace' || fail "it waits for a resync"
	on 1 0 '' wait orders --until copy.b=failed
	on 1 0 'Next: put both of the copy.s files back.*rpmirror member replace' explain
	# From now on this is the only in-sync copy.
	tell unmap
	on 0 0 '' wait orders --until phase=none
	spoil_metadata 0
	on 0 0 '' wait orders --until copy.a=failed,health=down
	on 0 0 "Next: only this host's copy has all acknowledged flushes" explain
	hosts_end
}

test_it_names_a_host_whose_only_copy_is_lost() {
	hosts_begin 2
	await_register
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	on 0 0 '' fence orders b
	on 0 0 '' wait orders --until insync.b=no
	tell put 8 1
	kill -9 "$APP_PID"
	on 0 0 '' wait orders --until health=down
	spoil_metadata 0
	on 0 0 '' wait orders --until health=down,copy.a=failed
	wait_until 30 is_said 1 'next: no in-sync copy can be used' || fail "it asks for a process there"
	hosts_end
}

# Only b of the in-sync copies a and b returns, and min-copies is 2. So b fills c, and serves
# together with c.
test_a_stale_copy_is_filled_where_too_few_return() {
	hosts_begin 3 8388608 1000 yes
	await_register
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	on 0 0 '' set orders min-copies=2
	hosts_ask kill 2 >answer
	on 0 0 '' wait orders --until insync.c=no
	tell put 64 7
	kill -9 "$APP_PID"
	hosts_ask kill 0 >answer
	on 1 0 '' wait orders --until health=down
	coproc APP { RPMIRROR_SOCKET=${sockets[1]} exec "$app" 2>app.log 5>&-; }
	started+=("$APP_PID")
	echo map-wait >&"${APP[1]}"
	wait_until 30 is_said 1 "why: waits for 'a' .*or until another copy is filled" || fail "it does not wait"
	is_said 1 'next: .*or of another member' || fail "the other host is not named"
	hosts_ask start 2 >answer
	on 1 0 '' wait orders --until phase=serving,primary=b,copy.c=in-sync,insync.c=yes,insync.a=no
	read -r -t 60 answer <&"${APP[0]}" || fail "it is not mapped"
	echo get 64 >&"${APP[1]}"
	read -r -t 60 answer <&"${APP[0]}"
	[ "$answer" = 7 ] || fail "what was acknowledged is $answer"
	cmp "${files[1]}" "${files[2]}" || fail "c lacks something"
	hosts_ask start 0 >answer
	on 1 0 '' wait orders --until health=healthy
	cmp "${files[0]}" "${files[1]}" || fail "a lacks something"
	hosts_end
}

# The register still names a as the serving primary.
test_a_set_without_a_primary_is_not_healthy() {
	hosts_begin 2 4194304 600000 # a long lease, so that no other member takes over
	"$tool" events orders --socket "${sockets[1]}" >events 2>err &
	started+=("$!")
	await_register
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	on 1 0 '' wait orders --until health=healthy
	kill -9 "$APP_PID"
	on 0 0 '' wait orders --until health=down,phase=serving,primary=a
	on 1 0 '' wait orders --until health=down,phase=serving,primary=a
	on 0 2 '' status --check
	on 1 2 '' status --check
	on 1 0 'by the register, but it is unknown whether it serves' explain
	on 1 0 'has ended' explain
	# The event appears after the other daemon's report; the status also shows whether the
	# member's key in the register is alive.
	wait_until 30 grep -q 'health healthy -> down' events || fail "no event"
	hosts_end
}

test_members_come_and_go() {
	hosts_begin 2
	await_register
	on 0 0 'added' member add orders "c=127.0.0.1:7999:$work/c"
	on 0 0 '' wait orders --until insync.c=no
	"$tool" init orders --join c --register "$register" >out 2>err || fail "no copy of c"
	"$tool" meta dump c --json | grep -q '"flags":\["empty"\]' || fail "c is not empty"
	on 1 0 '' wait orders --until insync.c=no
	on 1 0 'replaced' member replace orders c
	# Host 0 may not have read the record yet. In this case it refuses the request as busy,
	# without any effect.
	wait_until 30 is_removed c || fail "c is not removed"
	on 1 0 '' wait orders --until insync.b=yes,insync.a=yes
	hosts_end
}

is_size() { # SIZE: the mapping has this size, and its last word is durable on all copies
	tell size
	[ "$answer" = "ok $1" ] || fail "the mapping has $answer instead of $1"
	tell put $(($1 - 8)) 7
}

has_size() { # SIZE: the daemon of each copy reports this size
	local host
	for host in "${!sockets[@]}"; do
		"$tool" meta dump "${files[host]}" --json | grep -q "\"size\": *$1" || return 1
	done
}

test_a_set_grows() {
	hosts_begin 3 4194304
	await_register
	# The present mapping keeps its size, and the next mapping has the new size.
	map_on_first
	on 0 0 '' wait orders --until health=healthy,copy.b=in-sync,copy.c=in-sync
	on 0 2 'cannot be made smaller' grow orders 2M
	on 0 0 '' grow orders 4M
	on 1 0 'has its new size' grow orders 12M
	wait_until 30 is_shown 'a .* 4.*MiB of 12.*MiB' || fail "the mapping's size is not shown"
	on 2 0 'It has 12.*MiB' explain orders
	is_size 4194304
	tell unmap
	wait_until 30 has_size 12582912 || fail "the copies do not grow"
	tell map
	is_size 12582912
	# The copy of an absent member grows when the member returns.
	hosts_ask kill 2 >out
	wait_until 60 is_shown 'degraded' || fail "c is not excluded"
	on 0 0 '' wait orders --until insync.c=no
	on 0 0 'has its new size' grow orders 16M
	hosts_ask start 2 >out
	on 0 0 '' wait orders --until health=healthy,insync.c=yes,copy.c=in-sync
	is_size 12582912
	hosts_ask kill 2 >out
	on 0 0 '' wait orders --until insync.c=no
	on 0 0 'has its new size' grow orders 20M
	tell unmap
	tell map
	is_size 20971520
	hosts_ask start 2 >out
	on 0 0 '' wait orders --until health=healthy,insync.c=yes,copy.c=in-sync
	has_size 20971520 || fail "c has not grown"
	cmp "${files[0]}" "${files[1]}" && cmp "${files[0]}" "${files[2]}" || fail "the copies differ"
	# No disk has that size. The first member that refuses ends the order.
	on 0 9 'member [abc]: .*(not enough disk|No space)' grow orders 64T
	on 1 9 'member [abc]: .*(not enough disk|No space)' grow orders 64T
	on 0 0 '"size":20971520,' status orders --json
	cmp "${files[0]}" "${files[1]}" && cmp "${files[0]}" "${files[2]}" || fail "the files differ"
	tell put 64 8
	# One member of the in-sync set does not answer.
	tell unmap
	hosts_ask kill 1 >out
	on 0 3 'member b: ' grow orders 24M
	on 0 0 '"size":20971520,' status orders --json
	hosts_end
}

test_settings_change() {
	local began port
	hosts_begin 3 4194304
	await_register
	# The command changes all given settings or none. It refuses names that are not settings,
	# and settings that another command changes.
	on 0 2 "there is no setting 'speed'" set orders lease=9 speed=9
	on 0 2 'rpmirror grow' set orders size=8M
	on 0 2 'member replace' set orders hot-extents=9
	on 0 2 "is no value for lease" set orders lease=0
	on 0 2 'is given twice' set orders slow=1 slow=2
	on 0 2 'is not NAME=VALUE' set orders slow
	on 0 2 'NAME=VALUE' set orders
	on 0 2 'host.b=/x' set orders host.b=/x
	on 0 2 "'local_error' is no setting, or has no such value" set orders local-error=panic
	on 0 2 "'hosts' is no setting, or has no such value" set orders host.nobody=h:1
	on 0 1 'min_copies must be between 1 and' set orders min-copies=4 slow=9
	on 0 0 '"slow_ms":1000,' status orders --json
	# While a primary serves, all settings except the lease can be changed through any daemon.
	map_on_first
	on 0 0 '' wait orders --until health=healthy,copy.b=in-sync,copy.c=in-sync
	on 1 10 'the lease changes only while there is no primary' set orders lease=4
	on 1 0 'has its new settings' set orders min-copies=2 blocked=0.2 replica-timeout=1.5 slow=0.5 holdoff=0.1 local-error=continue
	on 1 0 '"min_copies":2.*"replica_timeout_ms":1500,"slow_ms":500,"holdoff_ms":100,"blocked_ms":200,"local_error":"continue"' status orders --json
	# A copy that min-copies requires cannot be removed.
	hosts_ask kill 2 >out
	on 0 0 '' wait orders --until insync.c=no
	on 0 4 'fewer than min_copies would be left: rpmirror set SET min-copies=N, or wait until another copy is in-sync' member remove orders b
	on 0 0 '' wait orders --until insync.b=yes,copy.b=in-sync
	tell put 64 6
	# The new settings determine the number of copies that flushes need, and the time for which
	# flushes wait.
	hosts_ask kill 1 >out
	wait_until 60 is_shown 'degraded\|blocked' || fail "nobody is missed"
	began=$SECONDS
	echo 'put 64 7' >&"${APP[1]}"
	read -r -t 60 answer <&"${APP[0]}" || fail "no answer"
	[[ $answer == *"fewer than min_copies would be left"* ]] && [ $((SECONDS - began)) -lt 15 ] || fail "below min-copies: $answer"
	on 0 4 'fewer members than that are in-sync' set orders min-copies=3
	on 0 0 'new settings' set orders min-copies=1
	tell put 64 8
	# The address of a member's host changes, first to a wrong address, then to the right one.
	port=$("$tool" status orders --json --socket "${sockets[0]}" | grep -oE '"name":"b"[^}]*"port":[0-9]+' | grep -oE '[0-9]+$')
	on 0 0 'new settings' set orders host.b=127.0.0.1:1
	hosts_ask start 1 >out
	hosts_ask start 2 >out
	on 0 0 '' wait orders --until copy.c=in-sync,insync.c=yes,insync.b=no
	on 0 0 'new settings' set orders "host.b=127.0.0.1:$port"
	on 0 0 '' wait orders --until health=healthy,insync.b=yes
	# Without a primary the lease of the next primary can be set.
	tell unmap
	on 0 0 '' wait orders --until phase=none
	# Sanitizers leave this address free for programs.
	on 2 0 'new settings' set orders lease=4 address=0x7e9000000000 blocked=for-ever
	# The other daemons read the address from the register.
	wait_until 60 is_shown '"lease_ms":4000.*"blocked_ms":4294967295.*"address":"00007e9000000000"' orders --json ||
		fail "the new settings are not shown: $(cat out)"
	tell map
	tell put 64 9
	on 1 0 '"lease_ms":4000' status orders --json
	hosts_end
}

test_it_counts_the_registers_members() {
	local uri pids etcd
	mkfifo etcd_in etcd_out
	"$SYSTEM_ETCD" 3 <etcd_in >etcd_out 2>etcd.log &
	etcd=$!
	started+=("$etcd")
	logs+=(etcd.log)
	exec 5>etcd_in
	read -r uri pids <etcd_out || { # 77: etcd is not installed
		wait $etcd || exit $?
	}
	hosts_begin 2 4194304 5000 no "$uri"
	wait_until 90 is_shown 'register etcd 3 of 3' || fail "not three members"
	map_on_first
	on 0 0 '' wait orders --until health=healthy
	on 0 0 'survives the loss of any one host' status
	on 0 0 '"outcome":"fails-over"' status --what-if lost=a --json
	on 0 0 'nothing changes; the register goes on with 2 of 3' status --what-if "lost=$(grep -oE '[0-9.]+:[0-9]+' <<<"$uri" | head -1)"
	kill -9 "${pids%% *}"
	wait_until 90 is_shown 'register etcd 2 of 3' || fail "not two members"
	on 0 0 'but not of a host of the register' status
	hosts_end
	exec 5>&-
	wait $etcd || fail "etcd does not end"
}

"test_$1"
