#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The daemons start with each configuration in contrib/examples, after its addresses and paths are replaced by those of
# this machine.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"
logs=(out err)
folder=$RPMA_SOURCE/contrib/examples
echo 'a secret of enough bytes' >secret
chmod 600 secret
export HOME=$work

# here FILE: prints the example with this machine's addresses and folders.
here() {
	sed -E "s#192\\.0\\.2\\.[0-9]+#127.0.0.1#g; s#/etc/rpmirror/orders.secret#$work/secret#; s#/pm/orders#$work/orders#
		s#:7650#:0#; s#:7205#:0#; s#--port 7204#--port 0#" "$folder/$1"
}

# start COMMAND...: the command must print a line on standard output, and end after SIGTERM without
# an error.
start() {
	: >out
	"$@" >out 2>err </dev/null &
	started+=("$!")
	wait_until 20 test -s out || fail "'$*' does not start"
	kill "$!"
	wait "$!" || fail "'$*' ends with $?"
}

test_rpmirrord_starts_with_each_of_three() {
	local member
	for member in a b c; do
		sed "s#/etc/rpmirror/orders.secret#$work/secret#" "$folder/rpmirrord-$member.conf" >conf
		"$RPMIRRORD" --config conf --check >out 2>err || fail "host $member"
		grep -q ': 1 sets$' out || fail "there is no set"
		{
			echo "socket = $work/socket"
			here "rpmirrord-$member.conf" | sed "s#^register = .*#register = file:$work/register#"
		} >conf
		start "$RPMIRRORD" --config conf
	done
	# The three examples must be equal except for the member and the address.
	sed -E 's/192\.0\.2\.[123]:7650//; s/^member = .//; s/^# .*//' "$folder"/rpmirrord-[abc].conf | sort | uniq -c |
		awk '$1 % 3 { print; bad = 1 } END { exit bad }' || fail "the three hosts' files differ"
}

# check_refuses PATTERN: 'rpmirrord --check' must end with 1 and print a text like PATTERN.
check_refuses() {
	local status=0
	"$RPMIRRORD" --config conf --check >out 2>err || status=$?
	[ $status = 1 ] || fail "--check ends with $status"
	grep -q "$1" err || fail "--check does not say '$1'"
	[ ! -s out ] || fail "--check reports sets as well"
}

test_check_refuses_a_secret_that_the_daemon_cannot_use() {
	sed "s#/etc/rpmirror/orders.secret#$work/wanted#" "$folder/rpmirrord-a.conf" >conf
	rm -f wanted
	check_refuses "set orders: cannot open secret file $work/wanted: No such file"
	cp secret wanted
	chmod 644 wanted
	check_refuses "set orders: .*chmod 600 $work/wanted"
	chmod 600 wanted
	echo short >wanted
	check_refuses "set orders: secret file $work/wanted has less than"
	cp secret wanted
	"$RPMIRRORD" --config conf --check >out 2>err || fail "a good secret is refused"
}

# The command in the example's comment makes the set.
test_the_set_of_rpmirrords_example_can_be_made() {
	sed -n '/^#   rpmirror init orders --size/,/[^\\]$/p' "$folder/rpmirrord-a.conf" | sed 's/^# *//' >line
	grep -q 'member c=' line || fail "the line is not whole: $(cat line)"
	sed -E "s#^rpmirror#$RPMIRROR#; s#/etc/rpmirror/orders.secret#$work/secret#; s#=192.0.2.1:/pm#=127.0.0.1:$work#; s#8G#2M#
		s#--register .*#--register file:$work/register --lonely manual#" line >run.sh
	sh -e run.sh >out 2>err || fail "rpmirror init"
	[ "$(stat -c %s orders)" = 2097152 ] || fail "there is no copy"
}

test_rpmemd_starts() {
	here rpmemd.conf >conf
	start "$RPMEMD" -c conf --listen --log-file - --secret-file "$work/secret" --poolset-dir "$work"
	grep -q '^listening at 127.0.0.1:' out || fail "listens elsewhere"
	grep -q 'notice: ' err || fail "the log level is not taken"
}

# Reads the environment file as systemd does, and starts the unit's command with it.
test_rpma_serve_starts() {
	local line
	here rpma-serve.conf | sed -E '/^#/d; s/^([A-Z_]+)=(.*)/\1="\2"/' >environment
	. ./environment
	[ "$RPMA_SIZE" = 1G ] || fail "there is no size"
	export CREDENTIALS_DIRECTORY=$work
	truncate -s 1M pool
	line=$(sed -n 's/^ExecStart=[^ ]* //p' "$RPMA_UNIT" | sed 's/%i/pool/g; s/[$]{\([A-Z_]*\)}/$\1/g')
	# shellcheck disable=SC2086 # options are words
	start "$RPMA_TOOL" $(eval "echo $line")
	grep -q "^serving region 'pool' at 127.0.0.1:" out || fail "$(cat out)"
}

"test_$1"
