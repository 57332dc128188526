#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Errors before a server serves, and its behaviour while it serves.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_a_file_is_created_reserved_and_announced() {
	serve made --create --size 3M --region pool
	grep -qxE "serving region 'pool' at 127.0.0.1:[0-9]+: 3 MiB of made, durability (file|dax)" serve.out ||
		fail "unexpected announcement: $(cat serve.out)"
	[ "$(stat -c %s made)" = $((3 << 20)) ] || fail "the file has the wrong size"
	[ "$(stat -c %b made)" -ge $((3 << 20 >> 9)) ] ||
		fail "the file's blocks are not reserved"
}

test_the_announcement_can_be_json() {
	serve 'a"b' --json --create --size 1M
	grep -qxE '\{"addr":"127.0.0.1","port":[0-9]+,"secret":false,"regions":\[\{"region":"a\\"b","file":"a\\"b","size":1048576,"durability":"(file|dax)"\}\]\}' serve.out ||
		fail "unexpected announcement: $(cat serve.out)"
}

test_a_missing_file_is_named() {
	expect 3 'nope does not exist; use --create' "$rpma" serve --port 0 nope
}

test_an_existing_file_is_not_created_again() {
	echo precious >file
	expect 3 'file exists already' "$rpma" serve --port 0 --create --size 1M file
	[ "$(cat file)" = precious ] || fail "the file was changed"
}

test_only_regular_files_are_served() {
	mkdir folder
	mkfifo pipe
	expect 3 'folder is not a regular file' "$rpma" serve --port 0 folder
	expect 3 'pipe is not a regular file' "$rpma" serve --port 0 pipe
	expect 3 '/dev/null is not a regular file' "$rpma" serve --port 0 /dev/null
}

test_a_file_that_is_empty_or_too_small_is_refused() {
	: >empty
	head -c 4096 /dev/zero >small
	expect 3 'empty is empty' "$rpma" serve --port 0 empty
	expect 3 'small is too small: it has 4 KiB, and 1 MiB are to be served' \
		"$rpma" serve --port 0 --size 1M small
}

test_a_full_disk_leaves_nothing_half_made() {
	expect 3 'not enough disk for 8 TiB' "$rpma" serve --port 0 --create --size 8T huge
	[ ! -e huge ] || fail "a half-made file is left"
	[ -z "$(find . -name 'huge*')" ] || fail "a temporary file is left"
}

test_a_disk_that_is_really_full_leaves_nothing_half_made() {
	local rc=0
	on_small_disk 1M bash -c '
		"$1" serve --port 0 --create --size 2M disk/new; echo "exit $?"
		truncate -s 2M disk/sparse
		"$1" serve --port 0 disk/sparse; echo "exit $?"
		ls -s disk' test "$rpma" >out 2>err || rc=$?
	[ "$rc" = 0 ] || exit "$rc"
	[ "$(grep -c '^exit 3$' out)" = 2 ] || fail "unexpected exit codes: $(cat out err)"
	grep -q 'disk/new: not enough disk for 2 MiB and a scratch file of 1 MiB: .* 1 MiB left' err || fail "says: $(cat err)"
	grep -q 'disk/sparse: not enough disk for 2 MiB and' err || fail "says: $(cat err)"
	grep -qx 'total 0' out || fail "disk is in use: $(cat out)"
	! grep -q new out || fail "a half-made file is left: $(cat out)"
}

# The disk has enough room for the file, but not for the scratch file, too. The server must report
# this before it creates a file.
test_the_scratch_file_is_counted_and_named_when_the_disk_is_small() {
	local rc=0
	on_small_disk 4M bash -c '
		"$1" serve --port 0 --create --size 4M disk/new; echo "exit $?"
		ls -s disk' test "$rpma" >out 2>err || rc=$?
	[ "$rc" = 0 ] || exit "$rc"
	grep -q '^exit 3$' out || fail "unexpected: $(cat out err)"
	grep -q 'disk/new: not enough disk for 4 MiB and a scratch file of 1 MiB: the file system has 4 MiB left' err ||
		fail "says: $(cat err)"
	grep -qx 'total 0' out || fail "disk is in use: $(cat out)"
}

test_a_folder_that_does_not_exist_is_named() {
	expect 3 'cannot create nowhere/file: No such file' \
		"$rpma" serve --port 0 --create --size 1M nowhere/file
}

test_an_address_that_is_not_ours_is_refused() {
	head -c 4096 /dev/zero >file
	expect 3 'cannot listen on 192.0.2.1:7204: .*choose another' "$rpma" serve --addr 192.0.2.1 file
	expect 3 "no such address 'bogus.invalid'" "$rpma" serve --addr bogus.invalid file
}

test_a_port_in_use_is_refused_and_nothing_is_created() {
	serve first --create --size 1M
	expect 3 'Address already in use; choose another' \
		"$rpma" serve --port "${where##*:}" --create --size 1M second
	[ ! -e second ] || fail "a file is left"
}

test_a_file_is_served_once_at_a_time() {
	serve file --create --size 1M
	expect 3 'file is being served already' "$rpma" serve --port 0 file
	stop_server
	serve file
}

test_volatile_memory_is_refused_unless_allowed() {
	local name=/dev/shm/rpma-test-$$
	[ "$(stat -f -c %T /dev/shm)" = tmpfs ] || fail "/dev/shm is no tmpfs here"
	expect 3 'in volatile memory.*--allow-volatile' "$rpma" serve --port 0 --create --size 1M "$name"
	[ ! -e "$name" ] || fail "a file is left in /dev/shm"
	head -c 1M /dev/zero >"$name"
	# shellcheck disable=SC2064 # the name is known now
	trap "rm -f $name $name.rpma; cleanup" EXIT
	serve "$name" --allow-volatile
	grep -q 'durability volatile$' serve.out || fail "not announced as volatile"
	random_file data 5000
	expect 5 'volatile memory that its server cannot persist' "$rpma" put data "$where"
	expect_ok "$rpma" put --allow-volatile data "$where"
	grep -q 'flushed to persistence: no' out || fail "claims to have flushed: $(cat out)"
	expect_ok "$rpma" ping --count 10 "$where"
	grep -q 'write + flush persistent .*not possible' out || fail "ping claims to persist: $(cat out)"
}

test_signals_end_the_server_with_success_though_clients_are_connected() {
	local signal
	for signal in INT TERM; do
		serve "file$signal" --create --size 1M
		"$rpma" ping --count 1000000 "$where" >/dev/null 2>&1 &
		started+=("$!")
		sleep 0.3
		kill "-$signal" "$server"
		wait "$server" || fail "the server ends with $? after SIG$signal"
	done
}

test_more_clients_than_allowed_get_the_reason() {
	serve file --create --size 1M --max-clients 1 --verbose
	"$rpma" ping --count 1000000 "$where" >/dev/null 2>&1 &
	started+=("$!")
	wait_until 20 grep -q 'client 1 from .* connected' serve.err || fail "the first is not let in"
	random_file data 100
	expect 5 'serves as many clients as it may' "$rpma" put data "$where"
	grep -q 'refused client .*exceeds the number of clients that may be served' serve.err || fail "the server does not log the refusal"
	kill -9 "${started[-1]}"
	wait_until 20 "$rpma" put data "$where" >out 2>&1 || fail "the place is never free again: $(cat out)"
}

test_clients_come_and_go_in_the_verbose_log() {
	serve file --create --size 1M --verbose
	random_file data 100
	expect_ok "$rpma" put data "$where"
	wait_until 10 grep -q 'client 1: Connection closed' serve.err || fail "no trace of the client"
	grep -q "client 1 from 127.0.0.1 connected to 'file'" serve.err || fail "no trace of the client's coming"
}

# The client is killed while its request waits, because the server is stopped.
test_a_client_that_is_killed_before_its_answer_is_no_event() {
	serve region --create --size 1M
	kill -STOP "$server"
	for _ in 1 2 3; do
		"$rpma" ping "$where" >out 2>err </dev/null &
		started+=("$!")
		wait_until 20 request_waits
		kill -9 "$!"
		wait "$!" || :
	done
	kill -CONT "$server"
	expect_ok "$rpma" ping --count 1 "$where"
	stop_server
	[ ! -s serve.err ] || fail "says: $(cat serve.err)"
}
# request_waits: succeeds if the greeting of the last connection is in its socket.
request_waits() {
	ss -Htn "sport = :${where##*:}" | awk '$1 == "ESTAB" && $2 > 0 { found = 1 } END { exit !found }'
}

test_a_server_that_any_host_reaches_warns_unless_it_has_a_secret() {
	local addr
	head -c 4096 /dev/zero >file
	echo 'a secret of enough bytes' >secret
	chmod 600 secret
	for addr in 0.0.0.0 ::; do
		serve file --addr $addr
		grep -qE "^rpma serve: warning: .* requires no secret, so every client that reaches this port may read and overwrite .*--secret-file .* --addr 127.0.0.1 only this machine$" serve.err ||
			fail "no warning at $addr: $(cat serve.err)"
		[ "$(wc -l <serve.err)" = 1 ] || fail "not one line: $(cat serve.err)"
		stop_server
	done
	serve file --addr 0.0.0.0 --secret-file secret
	[ ! -s serve.err ] || fail "it warns although it has a secret: $(cat serve.err)"
	stop_server
	for addr in 127.0.0.1 127.0.0.9 ::1 localhost; do
		serve file --addr $addr
		[ ! -s serve.err ] || fail "it warns at $addr: $(cat serve.err)"
		stop_server
	done
}

test_sighup_reads_the_secret_file_again() {
	head -c 4096 /dev/zero >file
	echo 'a secret of enough bytes' >secret
	cp secret old
	chmod 600 secret old
	random_file data 100
	serve file --secret-file secret
	expect_ok "$rpma" put --secret-file old data "$where"
	echo 'another of enough bytes' >secret
	kill -HUP "$server"
	wait_until 10 grep -q 'SIGHUP: secret file secret was read again' serve.err || fail "it says nothing"
	expect 5 'the secrets differ' "$rpma" put --secret-file old data "$where"
	expect_ok "$rpma" put --secret-file secret data "$where"
	echo short >secret
	kill -HUP "$server"
	wait_until 10 grep -q 'SIGHUP: the secret stays as it was: .* less than 16' serve.err || fail "it says nothing"
	echo 'another of enough bytes' >secret
	expect_ok "$rpma" put --secret-file secret data "$where"
	stop_server
}

test_sighup_ends_no_server() {
	serve file --create --size 4096
	kill -HUP "$server"
	wait_until 10 grep -q 'SIGHUP: there is no secret file' serve.err || fail "it says nothing"
	expect_ok "$rpma" info "$where"
	stop_server
	: >serve.out
	(trap '' HUP && exec "$rpma" serve --port 0 file) >serve.out 2>serve.err </dev/null &
	server=$!
	started+=("$server")
	wait_until 20 server_is_up_or_gone
	kill -HUP "$server"
	sleep 0.3
	[ ! -s serve.err ] || fail "it does not ignore what it was started to ignore: $(cat serve.err)"
	stop_server
}

expect_status() { # STATUS GREETING-IN-HEX: the server's answer before it hangs up
	local got
	got=$("$RPMA_STRANGER" 127.0.0.1 "${where##*:}" "$2") || fail "no answer to '$2'"
	[ "$got" = "$1" ] || fail "the answer to '$2' is $got instead of $1"
}

test_strange_greetings_are_answered_and_hurt_no_other() {
	local magic=52504d41 version=1 region=2 bad=4 unused=7
	serve file --create --size 1M
	expect_status $bad ''
	expect_status $bad 00
	expect_status $bad ${magic}
	expect_status $bad ffffffff05010000
	expect_status $version ${magic}01
	expect_status $version ${magic}04
	expect_status $bad ${magic}0500
	expect_status $bad ${magic}05000000
	expect_status $bad ${magic}05050000
	expect_status $bad ${magic}05ff0000
	expect_status $bad ${magic}05010005
	expect_status $bad ${magic}050100ff"$(printf '61%.0s' {1..200})"
	expect_status $region ${magic}0501000161
	expect_status $unused ${magic}05010100
	# The log has at most five refusals for each reason in a period.
	[ "$(grep -c 'refused client' serve.err)" -ge 9 ] || fail "refusals are not logged"
	random_file data 100
	expect_ok "$rpma" put data "$where"
}

"test_$1"
