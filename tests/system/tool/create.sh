#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Files whose creation takes long: the progress that is shown, and the files that a signal leaves.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

test_making_a_file_is_shown_on_a_terminal_only() {
	serve quiet --create --size 16M
	[ ! -s serve.err ] || fail "something was printed to a file: $(cat serve.err)"
	stop_server
	script -qec "timeout --foreground -s TERM 5 '$rpma' serve --port 0 --create --size 16M shown" /dev/null \
		</dev/null >terminal || :
	grep -qE 'reserve \[#* *\] +[0-9]+% ' terminal || fail "reserving is not shown: $(cat -v terminal)"
	grep -qE 'read in \[#* *\] +[0-9]+% .*ETA' terminal || fail "reading in is not shown: $(cat -v terminal)"
	grep -q 'serving region .shown. at' terminal || fail "it does not serve: $(cat -v terminal)"
}

# begin_slowly INJECTION...: starts a server that makes dir/pool, with delayed system calls. $server
# is its process id.
begin_slowly() {
	local inject=()
	strace -o /dev/null true 2>/dev/null || exit 77
	for i in "$@"; do inject+=(-e "inject=$i"); done
	mkdir -p dir
	: >trace
	# A traced process cannot be checked for leaks.
	ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 \
		strace -o trace -e trace=madvise,fallocate,openat "${inject[@]}" \
		"$rpma" serve --port 0 --create --size 320M dir/pool >serve.out 2>serve.err </dev/null &
	strace=$!
	started+=("$strace")
}

# end_it SIGNAL: the signal must end the server immediately, with success, and no part of the file
# may remain.
end_it() {
	local rc=0 begun=$SECONDS
	server=$(pgrep -P "$strace")
	started+=("$server")
	kill "-$1" "$server"
	wait "$strace" || rc=$?
	[ "$rc" = 0 ] || fail "it ends with $rc after SIG$1: $(cat serve.err)"
	[ $((SECONDS - begun)) -le 6 ] || fail "it ends after $((SECONDS - begun)) s"
	[ ! -s serve.out ] || fail "it served: $(cat serve.out)"
	[ -z "$(ls -A dir)" ] || fail "left: $(ls -A dir)"
}

test_a_signal_ends_bringing_a_file_in_and_removes_it() {
	local signal
	for signal in INT TERM; do
		begin_slowly madvise:delay_enter=1s
		wait_until 30 grep -q 'madvise(.*MADV_POPULATE_READ\|madvise(.*, 22)\|madvise(.*0x16' trace ||
			fail "it was not held up: $(cat trace serve.err)"
		[ -e dir/pool ] || fail "it has no name yet"
		end_it $signal
	done
}

test_a_signal_ends_reserving_a_file_without_a_name() {
	begin_slowly fallocate:delay_enter=1s
	wait_until 30 grep -q 'fallocate(' trace || fail "it was not held up: $(cat trace serve.err)"
	[ -z "$(ls -A dir)" ] || fail "it has a name: $(ls -A dir)"
	end_it INT
}

# The test uses a file system without unnamed files.
test_a_signal_removes_an_unfinished_file_that_has_a_name() {
	local number
	begin_slowly fallocate:delay_enter=1s
	wait_until 30 grep -q 'O_TMPFILE' trace || fail "it was not held up: $(cat trace serve.err)"
	end_it TERM
	number=$(grep openat trace | grep -n -m 1 O_TMPFILE | cut -d: -f1)
	begin_slowly openat:error=EOPNOTSUPP:when="$number" fallocate:delay_enter=1s
	wait_until 30 grep -q 'fallocate(' trace || fail "it was not held up: $(cat trace serve.err)"
	ls dir/pool.?????? >/dev/null || fail "it has no temporary name: $(ls -A dir)"
	end_it TERM
}

test_a_file_made_under_a_secret_is_its_owners_alone() {
	echo 'a secret of enough bytes' >secret
	chmod 600 secret
	umask 022
	serve private --create --size 1M --secret-file secret
	[ "$(stat -c %a private)" = 600 ] || fail "its mode is $(stat -c %a private)"
	stop_server
	serve public --create --size 1M
	[ "$(stat -c %a public)" = 644 ] || fail "its mode is $(stat -c %a public)"
	stop_server
	umask 027
	serve group --create --size 1M
	[ "$(stat -c %a group)" = 640 ] || fail "its mode is $(stat -c %a group)"
}

"test_$1"
