#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# If put exits with 0, another process finds the bytes under the name of the served file.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

removed='was removed or renamed' replaced='was replaced by another file' truncated='was truncated'

lose_file() { # removed|renamed|replaced|truncated|got-onto|moved-with-folder: changes dir/pool
	case $1 in
	removed) rm dir/pool ;;
	renamed) mv dir/pool dir/other ;;
	replaced) random_file new 1M && mv new dir/pool ;;
	truncated) truncate -s 1000 dir/pool ;;
	got-onto) "$rpma" get "$where" dir/pool >got.out 2>&1 || fail "get fails: $(cat got.out)" ;;
	moved-with-folder) mv dir elsewhere && mkdir dir && cp elsewhere/pool dir/pool ;;
	esac
}

# check_refusal CHANGE PATTERN [PUT OPTION...]: makes the CHANGE while the server has no client; the
# next put must be refused.
check_refusal() {
	local deed=$1 pattern=$2
	shift 2
	rm -rf dir elsewhere
	mkdir dir
	serve dir/pool --create --size 1M "${serve_options[@]}"
	random_file data 2000
	expect_ok "$rpma" put "$@" data "$where"
	cmp -n 2000 data dir/pool || fail "a successful put is not found under the name"
	lose_file "$deed"
	expect 5 "the file of region 'pool' of $where $pattern while it was served: .* restart the server" \
		"$rpma" put "$@" data "$where"
	expect 5 "$pattern" "$rpma" put "$@" --no-verify data "$where"
	[ "$(grep -c "region 'pool': .*/dir/pool $pattern; .*refused until this server is restarted" serve.err)" = 1 ] ||
		fail "the server does not log this once: $(cat serve.err)"
	grep -q 'refused client .* wants to write to a file that' serve.err || fail "the refusal is not logged"
	stop_server
}
serve_options=()

test_a_put_into_a_removed_file_fails() { check_refusal removed "$removed"; }
test_a_put_into_a_renamed_file_fails() { check_refusal renamed "$removed"; }
test_a_put_into_a_replaced_file_fails() { check_refusal replaced "$replaced"; }
test_a_put_into_a_truncated_file_fails() { check_refusal truncated "$truncated"; }
test_a_put_after_a_get_onto_the_served_file_fails() { check_refusal got-onto "$replaced"; }
test_a_put_into_a_file_whose_folder_moved_fails() { check_refusal moved-with-folder "$replaced"; }

test_with_a_secret_a_put_into_a_lost_file_fails_as_well() {
	echo 'a secret of enough bytes' >secret
	chmod 600 secret
	serve_options=(--secret-file "$PWD/secret")
	check_refusal removed "$removed" --secret-file secret
	check_refusal replaced "$replaced" --secret-file secret
}

# lost_under_a_put DEED PATTERN: makes the change DEED during a put. The put checks the name at its
# end, even if the server has noticed nothing before.
lost_under_a_put() { # DEED PATTERN
	local deed=$1 pattern=$2 rc=0
	mkdir dir
	serve dir/pool --create --size 64M
	mkfifo pipe
	"$rpma" put --verbose - "$where" <pipe >out 2>err &
	started+=("$!")
	exec 5>pipe
	head -c 1M /dev/zero >&5
	lose_file "$deed"
	exec 5>&-
	wait "${started[-1]}" || rc=$?
	[ "$rc" = 5 ] || fail "put exits with $rc: $(cat out err)"
	grep -q "^rpma put: the file of region 'pool' of $where $pattern while it was served" err ||
		fail "put says: $(cat err)"
	! grep -q 'flushed to persistence' out || fail "put claims success: $(cat out)"
}

test_a_file_removed_under_a_put_fails_it() { lost_under_a_put removed "$removed"; }
test_a_file_replaced_under_a_put_fails_it() { lost_under_a_put replaced "$replaced"; }

# During a long put the server checks by itself, and reports the change.
test_a_long_put_ends_soon_after_its_file_is_lost() {
	local rc=0
	mkdir dir
	serve dir/pool --create --size 8M
	mkfifo pipe
	"$rpma" put - "$where" <pipe >out 2>err &
	started+=("$!")
	exec 5>pipe
	head -c 1M /dev/zero >&5
	rm dir/pool
	wait_until 10 grep -q "$removed" serve.err || fail "the server does not notice by itself"
	head -c 4M /dev/zero >&5 2>/dev/null || :
	wait_until 20 is_gone "${started[-1]}" || fail "the put goes on"
	wait "${started[-1]}" || rc=$?
	exec 5>&-
	[ "$rc" = 5 ] || fail "put exits with $rc: $(cat err)"
	grep -q "$removed" err || fail "put says: $(cat err)"
}

test_what_a_lost_file_holds_can_still_be_read() {
	serve pool --create --size 1M
	random_file data 1M
	expect_ok "$rpma" put data "$where"
	rm pool
	expect 5 "$removed" "$rpma" put data "$where"
	expect_ok "$rpma" get "$where" pool
	cmp data pool || fail "something else came back"
	expect_ok "$rpma" ping --count 10 "$where"
}

test_a_name_that_comes_back_is_not_trusted_again() {
	serve pool --create --size 1M
	random_file data 1000
	mv pool away
	expect 5 "$removed" "$rpma" put data "$where"
	mv away pool
	expect 5 "$removed" "$rpma" put data "$where"
	stop_server
	serve pool
	expect_ok "$rpma" put data "$where"
}

test_one_lost_file_does_not_touch_the_other_regions() {
	serve one --create --size 1M two
	random_file data 1000
	rm one
	expect 5 "$removed" "$rpma" put --region one data "$where"
	expect_ok "$rpma" put --region two data "$where"
	cmp -n 1000 data two || fail "the bytes are not under the name"
}

test_a_name_that_is_a_symbolic_link_is_followed() {
	mkdir there
	head -c 1M /dev/zero >there/pool
	ln -s there/pool link
	serve link
	random_file data 1000
	expect_ok "$rpma" put data "$where"
	cmp -n 1000 data there/pool || fail "the bytes are not in the link's target"
	head -c 1M /dev/zero >other
	ln -sfn other link
	expect 5 "$replaced" "$rpma" put data "$where"
}

# The end of a put must make the name durable, too, so that the name is there after a crash.
test_a_successful_put_has_the_folder_synced() {
	local before
	head -c 1M /dev/zero >pool
	serve pool
	strace -f -e trace=fsync -o trace -p "$server" 2>strace.err &
	started+=("$!")
	wait_until 10 grep -q attached strace.err || exit 77 # strace is missing, or is not permitted to trace
	random_file data 1000
	expect_ok "$rpma" put data "$where"
	before=$(grep -c 'fsync(' trace) || :
	[ "$before" -ge 1 ] || fail "no folder was synced: $(cat trace)"
}

# The duration of a system call for a file depends on its file system. In this test each such call
# for the first file is delayed.
test_a_slow_look_at_one_file_delays_no_other() {
	local slow rc=0
	serve one --create --size 1M --verbose two
	random_file data 1000
	strace -f -P "$PWD/one" -e inject=stat,newfstatat,statx:delay_exit=3s -o trace -p "$server" 2>strace.err &
	started+=("$!")
	wait_until 10 grep -q attached strace.err || exit 77 # strace is missing, or is not permitted to trace
	"$rpma" put --region one data "$where" >slow.out 2>slow.err &
	slow=$!
	started+=("$slow")
	wait_until 20 grep -q "client 1 from .* connected" serve.err || fail "the client is not served"
	expect_ok "$rpma" put --region two data "$where"
	! is_gone "$slow" || fail "the look at the first file was not slow"
	wait "$slow" || rc=$?
	grep -q DELAYED trace || exit 77 # the kernel or the C library has another stat call
	[ "$rc" = 0 ] || fail "the slow put exits with $rc: $(cat slow.err)"
}

# The server has no right to read the folder, so it cannot sync the folder, and syncs the whole file
# system instead. strace skips the real call: it would write back the files of tests that run at the
# same time, some of which check which bytes are not written back yet.
test_a_name_in_a_folder_that_cannot_be_read_is_on_the_disk() {
	local before after
	[ "$(id -u)" = 0 ] && strace -o /dev/null true 2>/dev/null || exit 77
	chmod 755 .
	mkdir drop
	random_file drop/region 100000
	chown -R nobody drop
	chmod 333 drop
	random_file data 1000
	setpriv --reuid=nobody --clear-groups test -x "$rpma" -a -w drop || exit 77
	strace -f -e trace=syncfs -e inject=syncfs:retval=0 -o trace setpriv --reuid=nobody --clear-groups \
		"$rpma" serve --port 0 drop/region >serve.out 2>serve.err &
	wait_until 20 test -s serve.out
	started+=("$(pgrep -P $!)" "$!") # a killed strace releases the traced processes
	where=$(sed -nE 's/.* at ([^ ]*:[0-9]+): .*/\1/p' serve.out)
	before=$(grep -c 'syncfs(.*= 0' trace || :)
	expect_ok "$rpma" put data "$where"
	after=$(grep -c 'syncfs(.*= 0' trace || :)
	[ "$after" -gt "$before" ] || fail "put ends with 0, but nobody synced the name: $(cat trace)"
}

"test_$1"
