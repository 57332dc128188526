#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The command line of rpmemd, its exit codes, --remove, its log, its unit and its manual.
# shellcheck source=tests/system/lib/processes.sh
. "$(dirname "$0")/../lib/processes.sh"

# shellcheck disable=SC2153 # set by CMakeLists.txt
rpmemd=$RPMEMD source=$RPMA_SOURCE unit=$RPMEMD_UNIT
logs=(err)
export HOME=$work

# expect CODE PATTERN ARGUMENTS...: the daemon must end with that exit code, print nothing on
# standard output, and print a text like PATTERN on standard error.
expect() {
	local want=$1 pattern=$2 got=0
	shift 2
	"$rpmemd" "$@" >out 2>err </dev/null || got=$?
	[ "$got" = "$want" ] || fail "'$*' exits with $got instead of $want"
	[ ! -s out ] || fail "'$*' writes to standard output"
	[ -z "$pattern" ] || grep -qE -e "$pattern" err || fail "'$*' does not say '$pattern'"
}

# make_pool NAME: makes a pool set with an empty file of 2 MiB as its part.
make_pool() {
	printf 'PMEMPOOLSET\n2M %s/%s.part\nOPTION NOHDRS\n' "$work" "$1" >"$1.set"
	truncate -s 2M "$1.part"
}

test_help_and_version_go_to_standard_error() {
	expect 0 '--poolset-dir' --help
	expect 0 'rpmemd version [0-9]' --version
	expect 0 'usage:' -h
	expect 0 'version' -V
}

test_bad_options_end_with_255() {
	expect 255 'usage: rpmemd' --nonsense
	expect 255 'log-level' --log-level loud
	expect 255 'usage' --remove
	expect 255 'not an option' word
	expect 255 'port-range' --port-range 9-1
	expect 255 'go together' --remove x --listen
}

metrics() { # OPTIONS...: into `out`
	"$rpmemd" --poolset-dir "$work" "$@" >out 2>err </dev/null || fail "'$*' exits with $?"
}

has_line() { grep -qxF -e "$1" out || fail "no line $1: $(cat out)"; }

test_pools_are_watched_by_their_metrics() {
	make_pool a
	printf 'PMEMPOOLSET\n2M %s/c1\n2M %s/c2\nOPTION NOHDRS\n' "$work" "$work" >c.set
	printf 'PMEMPOOLSET\n2M %s/new\n' "$work" >new.set
	printf 'PMEMPOOLSET\nnonsense\n' >bad.set
	mkfifo fifo
	metrics --openmetrics
	[ "$(tail -n 1 out)" = '# EOF' ] || fail "no end"
	has_line 'rpmemd_pools 4'
	has_line 'rpmemd_pool_size_bytes{pool="a.set"} 2097152'
	has_line 'rpmemd_pool_usable{pool="a.set"} 1'
	has_line 'rpmemd_pool_in_use{pool="a.set"} 0'
	has_line 'rpmemd_pool_usable{pool="bad.set"} 0'
	has_line 'rpmemd_pool_usable{pool="c.set"} 1'
	has_line 'rpmemd_pool_missing_parts{pool="new.set"} 1'
	has_line 'rpmemd_pool_usable{pool="new.set"} 1'
	grep -q '^rpmemd_filesystem_avail_bytes [1-9]' out || fail "no room"
	! grep -q rpmemd_up out || fail "a service that was not named"
	grep -q 'bad.set:2' err || fail "no reason"
	truncate -s 2M c1 new
	exec 8<a.part
	flock 8
	metrics --openmetrics
	has_line 'rpmemd_pool_in_use{pool="a.set"} 1'
	exec 8<&-
	has_line 'rpmemd_pool_usable{pool="c.set"} 0'
	has_line 'rpmemd_pool_usable{pool="new.set"} 0'
	grep -q 'c.set: 1 of its 2 parts are missing' err || fail "no reason"
	grep -q 'new has no header' err || fail "no reason"
	truncate -s 1M c1
	truncate -s 2M c2
	head -c 4096 /dev/urandom | dd of=new conv=notrunc status=none
	metrics --textfile rpmemd.prom
	[ ! -s out ] && grep -qx '# TYPE rpmemd_pool_usable gauge' rpmemd.prom || fail "no file"
	grep -q 'c1 has 1048576 bytes instead of 2097152' err || fail "no reason"
	grep -q 'the header of .*/new is damaged' err || fail "no reason"
	if command -v promtool >/dev/null; then
		promtool check metrics <rpmemd.prom >lint 2>&1 || fail "promtool: $(cat lint)"
	fi
	expect 1 'cannot read /nowhere' --poolset-dir /nowhere --openmetrics
	expect 1 'cannot create /nowhere/x' --poolset-dir "$work" --textfile /nowhere/x
}

test_a_service_is_watched_by_its_metrics() {
	(umask 077; echo 'a secret of enough bytes' >secret)
	"$rpmemd" --listen=127.0.0.1:0 --poolset-dir "$work" --secret-file secret --log-file log >listening &
	started+=("$!")
	wait_until 20 test -s listening || fail "it does not listen"
	local at
	at=$(sed 's/listening at //' listening)
	metrics "--listen=$at" --openmetrics
	has_line 'rpmemd_up 1'
	kill -9 "${started[-1]}"
	wait "${started[-1]}" || :
	metrics --openmetrics "--listen=$at"
	has_line 'rpmemd_up 0'
	[ ! -s log ] || fail "a look is in the log: $(cat log)"
}

test_remove_ends_with_the_errno() {
	expect 2 'none.set' --remove none.set
	expect 9 '' --remove /etc/passwd
	expect 9 '' --remove ../none.set
	expect 22 'absolute' --poolset-dir here --remove none.set
	expect 2 'no.conf' -c no.conf --remove none.set
	echo 'nonsense' >bad.conf
	expect 22 'bad.conf:1' -c bad.conf --remove none.set
	expect 0 '' --force --remove none.set
}

test_remove_takes_the_parts_and_with_its_flag_the_set() {
	make_pool a
	expect 0 '' --remove a.set
	[ ! -e a.part ] && [ -e a.set ] || fail "the wrong files are gone"
	make_pool b
	expect 0 '' --remove b.set --pool-set
	[ ! -e b.part ] && [ ! -e b.set ] || fail "files are left"
}

test_a_pool_in_use_stays() {
	make_pool a
	exec 9<a.part
	flock -x 9
	expect 11 'a.part' --remove a.set
	[ -e a.part ] || fail "the part is gone"
	expect 0 '' --remove a.set --force
	[ -e a.part ] || fail "the part is gone by force"
}

test_the_input_that_ends_is_status_1() {
	local got=0
	"$rpmemd" >out 2>err </dev/null || got=$?
	[ "$got" = 1 ] || fail "exits with $got"
	[ "$(head -c 4 out)" = RPMM ] || fail "there is no greeting"
}

test_a_start_that_fails_greets_with_the_reason() {
	local got=0
	"$rpmemd" --log-file "$work/none/log" >out 2>err </dev/null || got=$?
	[ "$got" = 1 ] || fail "exits with $got"
	grep -qa 'cannot open log file' out || fail "the greeting does not say why"
}

test_the_log_file_has_lines_of_the_level() {
	printf 'log-file = $HOME/log\nlog-level = notice\n' >.rpmemd.conf
	make_pool a
	expect 0 '' --remove a.set
	grep -qE '^[0-9-]+ [0-9:]+ rpmemd\[[0-9]+\]: notice: pool a.set was removed' log || fail "$(cat log)"
	make_pool a
	rm log
	expect 0 '' --remove a.set --log-level warn
	[ ! -s log ] || fail "a notice is logged at level warn"
}

test_the_manual_has_every_key() {
	local key page=$source/doc/man/5/rpmemd.conf.5
	for key in $("$rpmemd" --help 2>&1 | sed -nE 's/^ .* --([a-z-]+).*/\1/p'); do
		grep -q -e "-$key" "$source/doc/man/1/rpmemd.1" || fail "rpmemd(1) lacks --$key"
		case $key in config | remove | force | pool-set | openmetrics | textfile | help | version) continue ;; esac
		grep -q "^.It Cm $key" "$page" || fail "rpmemd.conf(5) lacks $key"
	done
}

test_the_unit_is_one_and_gives_few_rights() {
	command -v systemd-analyze >/dev/null || exit 77
	sed "s#^ExecStart=[^ ]*#ExecStart=$rpmemd#" "$unit" >rpmemd.service
	systemd-analyze verify --man=no ./rpmemd.service >out 2>&1 || fail "verify: $(cat out)"
	! grep -q 'rpmemd' out || fail "verify: $(cat out)"
	systemd-analyze security --offline=yes --threshold=30 ./rpmemd.service >out 2>&1 ||
		fail "security: $(cat out)"
}

# Runs the unit's command line with the variables that systemd would set.
test_the_units_command_listens() {
	local line daemon
	mkdir credentials state
	echo 'a secret of enough bytes' >credentials/secret
	chmod 440 credentials/secret
	export CREDENTIALS_DIRECTORY=$work/credentials
	line=$(sed -n 's/^ExecStart=[^ ]* //p' "$unit" | sed "s#%S/rpmemd#$work/state#")
	eval "exec '$rpmemd' $line --listen=127.0.0.1:0" >out 2>err </dev/null &
	daemon=$!
	started+=("$daemon")
	wait_until 20 test -s out
	grep -q '^listening at 127.0.0.1:[0-9]' out || fail "it does not listen"
	kill -TERM "$daemon"
	wait "$daemon" || fail "ends with $?"
}

"test_$1"
