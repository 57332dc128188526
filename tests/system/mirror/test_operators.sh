#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Operators' mistakes: files that were restored from backups, exchanged or configured twice; `resolve` and `--force` on
# the wrong side. Acknowledged data are not lost without a report, copies do not stay different, and each refusal names
# the mistake and the remedy. One set of two hosts serves all cases in turn.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
: "${RPMIRRORD:?}" "${RPMIRROR:?}" "${MIRROR_APP:?}"
export RPMIRROR_ON_FENCED=error
names=(a b) ports=(0 0) daemons=()
value=0
logs+=(a.log b.log a.app b.app out err)

daemon_start() { # HOST [LINES FOR THE SET]
	local host=$1 name=${names[$1]}
	cat >"$name.conf" <<-CONF
		listen = 127.0.0.1:${ports[host]}
		socket = $work/$name.socket
		peer-timeout = 5000
		[set orders]
		member = $name
		data = $work/$name/data
		register = ${registers[host]}
		${2:-}
	CONF
	rm -f "$name.socket" "$name.out"
	"$RPMIRRORD" -c "$name.conf" >"$name.out" 2>>"$name.log" &
	daemons[host]=$!
	started+=("$!")
	wait_until 30 grep -qs "^listening" "$name.out" || fail "the daemon of $name does not start"
	ports[host]=$(sed -n 's/^listening.*://p' "$name.out")
}

daemon_stop() { # HOST
	kill "${daemons[$1]}"
	wait "${daemons[$1]}" || fail "the daemon of ${names[$1]} ends with an error"
}

# on HOST CODE PATTERN ARGUMENTS...: runs the tool with this host's daemon; the exit code and the
# output must be these.
on() {
	local host=$1 want=$2 pattern=$3 got=0
	shift 3
	"$RPMIRROR" "$@" --timeout 30 --socket "$work/${names[host]}.socket" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	cat out err >both
	grep -qE -e "$pattern" both || fail "'$*' does not say '$pattern'"
}

says() { # HOST PATTERN WORD...: 'status --json' or another command prints the pattern
	"$RPMIRROR" "${@:3}" --socket "$work/${names[$1]}.socket" 2>&1 | grep -qE -e "$2"
}
await() { wait_until 30 says "$@" || fail "'${*:3}' on ${names[$1]} never says '$2': $("$RPMIRROR" explain orders --socket "$work/${names[$1]}.socket" 2>&1)"; }
copy_is() { await "$1" "\"local\": *true.*\"copy\": *\"$2\"" status orders --json; }

# app HOST PATTERN COMMAND...: runs a process that maps the set, executes the commands and unmaps
# the set; one of its answers must match.
app() {
	local host=$1 pattern=$2
	shift 2
	printf '%s\n' "$@" unmap | RPMIRROR_SOCKET=$work/${names[host]}.socket timeout 60 "$MIRROR_APP" >out 2>"${names[host]}.app" ||
		fail "the application fails: $*"
	grep -qE -e "$pattern" out || fail "'$*' on ${names[host]} says '$(cat out)' and not '$pattern'"
}

# hold HOST [force]: starts a process on that host that is the primary until release is called. With
# force the process waits for the role, and the host is promoted by force.
hold() { # HOST [force]
	mkfifo feed answers
	RPMIRROR_SOCKET=$work/${names[$1]}.socket "$MIRROR_APP" <feed >answers 2>"${names[$1]}.app" &
	holder=$!
	started+=("$holder")
	exec {feed}>feed {answers}<answers
	rm feed answers
	if [ -n "${2:-}" ]; then
		echo map-wait >&"$feed"
		await "$1" '"waiting": *\[\{' status orders --json
		on "$1" 0 '' promote orders "${names[$1]}" --force
		answered '^ok$' map-wait
	else
		tell '^ok$' map
	fi
}
answered() { # PATTERN WHAT
	local line
	read -r -t 60 line <&"$answers" || fail "no answer to '$2'"
	grep -qE -e "$1" <<<"$line" || fail "'$2' says '$line' and not '$1'"
}
tell() { # PATTERN COMMAND
	echo "$2" >&"$feed"
	answered "$1" "$2"
}
release() { # [crash]
	[ "${1:-}" = crash ] || tell '^ok$' unmap
	kill -9 "$holder"
	wait "$holder" 2>/dev/null || :
	exec {feed}>&- {answers}<&-
}

# The copies become in-sync while the primary is on that host.
in_sync() { says "$1" '"insync": *true.*"insync": *true' status orders --json; }
resync() {
	"$RPMIRROR" resync orders "${names[1 - $1]}" --socket "$work/${names[$1]}.socket" >/dev/null 2>&1 || :
	in_sync "$1"
}
heal() {
	hold "$1"
	wait_until 60 resync "$1" || fail "${names[1 - $1]} does not return: $("$RPMIRROR" explain orders --socket "$work/${names[$1]}.socket" 2>&1)"
	tell "^$value\$" 'get 4096'
	release
}

write() { # HOST: writes another value, which both copies acknowledge
	value=$((value + 1))
	app "$1" '^durable 3 ' map "put 4096 $value"
}

# Each read, and each copy, must have the newest value, and no other value.
whole() {
	local host
	for host in 1 0; do
		app "$host" "^$value\$" map 'get 4096'
	done
	cmp a/data b/data || fail "the copies differ"
}

save() { # NAME: makes an operator's backup of both copies and of the register
	mkdir "$1"
	cp -p a/data "$1/a.data"
	cp -p a/data.rpmirror "$1/a.meta"
	cp -p b/data "$1/b.data"
	cp -p b/data.rpmirror "$1/b.meta"
	cp -p register "$1/register"
}

# stopped HOST COMMAND...: runs the command while the host's daemon is stopped.
stopped() { # HOST COMMAND...
	daemon_stop "$1"
	"${@:2}"
	daemon_start "$1"
}

refused() { app "$1" "$2" map; } # HOST PATTERN

set_up() {
	registers=("file:$work/register" "file:$work/register")
	mkdir a b
	daemon_start 0
	daemon_start 1
	"$RPMIRROR" init orders --size 4M --register "${registers[0]}" --lonely manual --here a --here b \
		--member "a=127.0.0.1:${ports[0]}:$work/a/data" --member "b=127.0.0.1:${ports[1]}:$work/b/data" >out 2>err ||
		fail "the set cannot be made"
	await 0 'why: the set is new: no process has mapped it yet' status orders
	copy_is 0 in-sync
	copy_is 1 in-sync
	write 0
	daemon_stop 0
	daemon_stop 1
	save old
	daemon_start 0
	daemon_start 1
	copy_is 0 in-sync # a copy that was left in good order keeps its state
	copy_is 1 in-sync
	write 0
	write 1
}

old_metadata() { # HOST
	stopped "$1" cp "old/${names[$1]}.meta" "${names[$1]}/data.rpmirror"
	copy_is "$1" syncing
	refused "$1" "lacks acknowledged data.*${names[$1]}/data. lacks: it was restored.*'rpmirror promote orders ${names[$1]} --force'"
	heal $((1 - $1))
	whole
}

old_data() { # HOST COMMAND...: restores old data, in place or by another file
	stopped "$1" "${@:2}" "old/${names[$1]}.data" "${names[$1]}/data"
	copy_is "$1" syncing
	grep -q 'not the file that this daemon last used' "${names[$1]}.log" || fail "the log does not say it"
	refused "$1" "lacks acknowledged data.*${names[$1]}/data. lacks: it was restored.*'rpmirror promote orders ${names[$1]} --force'"
	heal $((1 - $1))
	whole
}

files_of_a_backup() {
	old_metadata 1
	old_metadata 0
	old_data 1 cp
	old_data 0 cp -p
	old_data 1 cp -p --remove-destination
}

exchange() { # FILE OF a, FILE OF b
	mv "$1" swapped
	mv "$2" "$1"
	mv swapped "$2"
}
exchange_copies() {
	daemon_stop 0
	daemon_stop 1
	exchange a/data b/data
	[ "$1" = data ] || exchange a/data.rpmirror b/data.rpmirror
	daemon_start 0
	daemon_start 1
}

exchanged_copies() {
	exchange_copies both
	refused 0 "a/data are of member 'b', and this host is 'a': move both files"
	refused 1 "b/data are of member 'a', and this host is 'b'"
	on 0 2 "are of member 'b'" status --check
	exchange_copies both
	copy_is 0 in-sync
	copy_is 1 in-sync
	whole
	exchange_copies data
	copy_is 0 syncing
	refused 0 "lacks: it was restored, exchanged.*'rpmirror promote orders a --force'"
	refused 1 "lacks: it was restored, exchanged.*'rpmirror promote orders b --force'"
	hold 0 force
	wait_until 60 resync 0 || fail "b does not return"
	tell "^$value\$" 'get 4096'
	release
	whole
}

a_name_of_another_host() {
	join() { "$RPMIRROR" init orders --join b --register "${registers[0]}" >out 2>err; }
	! join || fail "an in-sync copy begins anew"
	grep -q "the copy of 'b' counts as in-sync.*member replace" err || fail "it does not say what to do: $(cat err)"
	on 0 0 'replaced' member replace orders b
	await 1 'copy [0-9a-f]{16} was replaced by [0-9a-f]{16} .*rpmirror member replace orders b.*rpmirror init --join' explain orders
	refused 1 'was replaced by'
	daemon_stop 1
	rm b/data b/data.rpmirror
	daemon_start 1
	await 1 "does not exist; mount its disk, or .*'rpmirror member replace orders b'.*'rpmirror init orders --join b --register \"[^ ]*\"'" \
		explain orders
	daemon_stop 1
	join || fail "no copy of b"
	daemon_start 1
	copy_is 1 empty
	refused 1 'lacks acknowledged data.*/data. is not whole'
	heal 0
	whole
}

# twice KEY OTHER_KEY DATA META: a configuration with a second set, which has these files, must be
# refused. The second set's OTHER_KEY names the file that the first set names with KEY.
twice() {
	{
		cat b.conf
		printf '[set other]\nmember = b\ndata = %s\nmeta = %s\nregister = file:%s/other\n' "$work/$3" "$work/$4" "$work"
	} >twice.conf
	! "$RPMIRRORD" -c twice.conf --check >out 2>err || fail "$3 and $4 are taken"
	grep -qE "set 'orders', $1 = .*, and set 'other', $2 = .*, are the same file: each copy needs two files of its own" err || fail "it says: $(cat err)"
}

two_sets_on_one_path() {
	ln -s b link
	ln b/data hard
	ln b/data.rpmirror hard.meta
	twice data data b/data meta2
	twice data data link/data meta2
	twice data data hard meta2
	twice data meta data2 hard
	twice meta meta data2 hard.meta
	twice meta data link/data.rpmirror meta2
	# Start a second daemon with the same files.
	sed "s|^socket.*|socket = $work/second.socket|; s|^listen.*|listen = 127.0.0.1:0|" b.conf >second.conf
	"$RPMIRRORD" -c second.conf >second.out 2>second.log &
	started+=("$!")
	wait_until 30 grep -q 'is being served already' second.log || fail "it takes the files, too"
	kill $!
	wait $!
	whole
}

# Configures another set with the same name, and a set with another name.
other_sets() {
	mkdir c
	daemon_stop 1
	local set
	for set in orders stock; do
		"$RPMIRROR" init $set --size 4M --register "file:$work/c/$set.register" --lonely manual --here a --here b \
			--member "a=127.0.0.1:${ports[0]}:$work/c/$set.a" --member "b=127.0.0.1:${ports[1]}:$work/c/$set.b" >out 2>err ||
			fail "no set $set"
	done
	registers[1]=file:$work/c/orders.register
	daemon_start 1
	await 1 "another set 'orders' \([0-9a-f]{32}\), but this copy is of set 'orders' \([0-9a-f]{32}\): correct 'register'" explain orders
	await 1 "correct the daemon's configuration" explain orders
	refused 1 "another set 'orders'"
	on 1 1 "another set 'orders'" resolve orders --discard b
	registers[1]=${registers[0]}
	stopped 1 :
	copy_is 1 in-sync
	whole

	daemon_stop 1
	cp -p b/data.rpmirror mine
	cp c/stock.b.rpmirror b/data.rpmirror
	daemon_start 1
	refused 1 "b/data are of set 'stock' and not of 'orders': put the metadata of this copy back"
	stopped 1 cp c/orders.b.rpmirror b/data.rpmirror
	await 1 "another set 'orders'" explain orders
	refused 1 "another set 'orders'"
	stopped 1 cp -p mine b/data.rpmirror # another set's daemon used the data meanwhile
	heal 0
	whole
}

restore_register() {
	daemon_stop 0
	daemon_stop 1
	cp register.old register
	daemon_start 0
	daemon_start 1
}

resolve_on_the_wrong_side() {
	on 1 1 'nothing is to be resolved: the copy of b is in-sync' resolve orders --discard b
	on 0 1 'another host' resolve orders --discard b
	cp register register.old
	write 0
	write 0
	restore_register
	await 0 '"health": *"split"' status orders --json
	refused 0 '(holds flushes of|has seen) epoch .* register .*was restored.*rpmirror resolve orders --discard'
	on 1 0 '' resolve orders --discard b
	on 1 0 '' resolve orders --discard b
	# The remaining copy is the newest, and the other copy must not silently replace it.
	refused 1 'it is not known what the copy .* lacks.* discarded'
	on 0 0 '' resolve orders --discard a
	refused 0 "discarded.*'rpmirror promote orders a --force'"
	hold 0 force
	wait_until 60 resync 0 || fail "b does not return"
	tell "^$value\$" 'get 4096'
	release
	whole
}

# Each daemon sends requests to the other, so both daemons report the mismatch.
a_secret_on_one_host() {
	(umask 077 && echo 'a secret of enough bytes' >secret)
	daemon_stop 1
	daemon_start 1 "secret-file = $work/secret"
	await 0 '"refusal": *"secret"' status orders --json
	await 1 '"refusal": *"secret"' status orders --json
	on 0 0 'rpmirror_copy_refused.*member="b",reason="secret".* 1$' status orders --openmetrics
	stopped 1 :
	copy_is 1 in-sync
	wait_until 30 is_welcome || fail "b is refused without a secret"
	whole
}
is_welcome() { ! says 0 refusal status orders --json; }

force_beside_a_primary() {
	hold 0
	tell '^durable 3 ' 'put 4096 1000'
	release crash
	daemon_stop 0
	# Each side of the cut has its own register.
	cp register register2
	registers[1]=file:$work/register2
	stopped 1 :
	hold 1 force
	tell '^durable 2 ' 'put 4096 1001'
	tell '^durable 2 ' 'put 8192 1001'
	release
	daemon_stop 1
	daemon_start 0
	hold 0
	tell '^durable 1 ' 'put 4096 1002'
	registers[1]=${registers[0]}
	daemon_start 1
	await 1 'the register was restored, or a promotion was forced' explain orders
	await 1 'rpmirror resolve --discard MEMBER' explain orders
	tell '^durable 1 ' 'put 4096 1002'
	on 0 1 'nothing is to be resolved: the copy of a' resolve orders --discard a
	on 1 0 '' resolve orders --discard b
	wait_until 60 resync 0 || fail "b does not return"
	tell '^durable 3 ' 'put 4096 1003'
	tell '^0$' 'get 8192'
	release
	value=1003
	whole
}

test_the_set_survives_them() {
	set_up
	files_of_a_backup
	exchanged_copies
	a_name_of_another_host
	two_sets_on_one_path
	other_sets
	resolve_on_the_wrong_side
	a_secret_on_one_host
	force_beside_a_primary
}

"test_$1"
