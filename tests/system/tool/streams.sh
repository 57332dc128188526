#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# put reads from, and get writes to, files without a name or a size: standard input and output, pipes,
# devices.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

# device null|full: makes ./null or ./full, which is such a device. No test may let root write to a
# name in /dev: a get that replaced such a file would damage the machine.
device() { # null|full: makes ./null or ./full, which is such a device
	local -A minor=([null]=3 [full]=7)
	if [ "$(id -u)" = 0 ]; then
		mknod "$1" c 1 "${minor[$1]}" && : 2>/dev/null >>"$1" || exit 77
	else
		ln -s "/dev/$1" "$1"
	fi
}

test_put_reads_standard_input() {
	local size
	serve region --create --size 20M
	for size in 0 1 262144 262145 16777216 17000001; do
		random_file sent "$size"
		"$rpma" put --offset 5 - "$where" <sent >out 2>err || fail "$size bytes of a file: $(cat err)"
		cmp -i 0:5 -n "$size" sent region || fail "the region differs from a file of $size bytes"
		random_file sent "$size"
		dd if=sent bs=1000 status=none | "$rpma" put --offset 7 --json - "$where" >out 2>err ||
			fail "$size bytes of a pipe: $(cat err)"
		cmp -i 0:7 -n "$size" sent region || fail "the region differs from $size bytes of a pipe"
		grep -q "\"file\":\"-\",.*\"bytes\":$size,.*\"flushed\":true,\"verified\":" out || fail "says: $(cat out)"
		[ "$size" = 0 ] || grep -q '"verified":true' out || fail "not verified: $(cat out)"
	done
}

test_put_flushes_a_stream_on_its_way() {
	serve region --create --size 4M
	random_file sent 3000000
	"$rpma" put --flush-every 1M --verbose - "$where" < <(cat sent) >out 2>err || fail "$(cat err)"
	[ "$(grep -c '^flushed up to offset' out)" -ge 2 ] || fail "too few acknowledgements: $(cat out)"
	[ "$(grep -o '^flushed up to offset [0-9]*$' out | tail -n 1)" = 'flushed up to offset 3000000' ] ||
		fail "the last acknowledgement is not the end: $(cat out)"
	cmp -n 3000000 sent region || fail "the region differs"
}

test_standard_input_is_read_from_where_it_stands() {
	serve region --create --size 1M
	random_file sent 5000
	{ head -c 1000 >/dev/null && dd skip=0 count=0 status=none && "$rpma" put - "$where" >out 2>err; } <sent ||
		fail "$(cat err)"
	cmp -i 1000:0 -n 4000 sent region || fail "the region differs"
	grep -q '^put: 4000 bytes' out || fail "says: $(cat out)"
}

# A stream of exactly the region's size must be stored; one more byte must be refused.
test_a_stream_that_is_too_long_is_refused() {
	local rc=0 size
	serve region --create --size 300000
	random_file sent 300001
	head -c 300000 sent | "$rpma" put - "$where" >out 2>err || fail "it fits: $(cat err)"
	for size in 300001 3000000; do
		rc=0
		random_file sent "$size"
		"$rpma" put - "$where" < <(cat sent) >out 2>err || rc=$?
		[ "$rc" = 5 ] || fail "put of $size bytes exits with $rc: $(cat out err)"
		grep -q "standard input has more than the 300000 bytes that region 'region' has from offset 0" err ||
			fail "says: $(cat err)"
	done
	"$rpma" put -o 300000 - "$where" </dev/null >out 2>err || fail "nothing fits: $(cat err)"
	rc=0
	"$rpma" put -o 300000 - "$where" < <(echo x) >out 2>err || rc=$?
	[ "$rc" = 5 ] || fail "put behind the end exits with $rc: $(cat err)"
	rc=0
	"$rpma" put - "$where" <sent >out 2>err || rc=$?
	[ "$rc" = 5 ] || fail "put of a file that is too long exits with $rc"
	grep -q 'has 3000000 bytes, but' err || fail "says: $(cat err)"
}

# The memory of a put must not grow with its input.
test_an_endless_stream_takes_bounded_memory() {
	serve region --create --size 200M
	expect 5 '/dev/zero has more than the 209715200 bytes' \
		bash -c 'ulimit -d 65536 && exec "$@"' test "$rpma" put /dev/zero "$where"
}

test_put_reads_pipes_and_files_that_hide_their_size() {
	serve region --create --size 1M
	mkfifo pipe
	random_file sent 100000
	cat sent >pipe &
	started+=("$!")
	expect_ok "$rpma" put pipe "$where"
	cmp -n 100000 sent region || fail "the region differs"
	expect_ok "$rpma" put /proc/cpuinfo "$where"
	[ "$(head -c 9 region)" = processor ] || fail "a file of /proc was not read"
}

test_put_needs_a_standard_input() {
	local rc=0
	"$rpma" put - localhost <&- >out 2>err || rc=$?
	[ "$rc" = 3 ] || fail "put exits with $rc"
	grep -q 'cannot open standard input' err || fail "says: $(cat err)"
}

test_get_writes_to_standard_output_and_nothing_else() {
	local name
	random_file region 3000001
	serve region
	ln -s /proc/self/fd/1 stdout # like /dev/stdout
	for name in - stdout /dev/fd/1; do
		"$rpma" get "$where" $name >back 2>err || fail "get $name fails: $(cat err)"
		cmp region back || fail "get $name > file brings something else"
		grep -q '^get: 3000001 bytes' err || fail "no summary on standard error: $(cat err)"
		"$rpma" get --json --verbose "$where" $name 2>err | cat >back
		cmp region back || fail "get $name | cat brings something else"
		grep -q '^{"operation":"get"' err || fail "no summary on standard error: $(cat err)"
		printf before >back
		"$rpma" get --length 1000 "$where" $name >>back 2>err || fail "get $name fails: $(cat err)"
		[ "$(stat -c %s back)" = 1006 ] || fail "get $name >> file does not append"
	done
	[ ! -e ./- ] || fail "a file named '-' was made"
	[ "$(readlink stdout)" = /proc/self/fd/1 ] || fail "the link to standard output was replaced"
	script -qec "'$rpma' get --length 10 $where - >back" /dev/null </dev/null >terminal
	cmp -n 10 region back || fail "the terminal's bar is among the data"
}

test_get_and_put_make_a_pipe() {
	random_file region 5M
	random_file other 5M
	serve region other
	"$rpma" get "$where:region" - 2>err | "$rpma" put - "$where:other" >out 2>>err || fail "$(cat err)"
	grep -q '^put: 5242880 bytes.*verified: blake2b' out || fail "says: $(cat out)"
	cmp region other || fail "the files differ"
}

expect_failed_output() { # PATTERN: rc and err of a failed get
	[ "$rc" = 3 ] || fail "get exits with $rc: $(cat err)"
	grep -q "^rpma get: cannot write to $1" err || fail "says: $(cat err)"
}

test_output_that_cannot_be_written_fails_the_get() {
	local rc=0
	random_file region 3000000
	serve region
	"$rpma" get "$where" - >/dev/full 2>err || rc=$?
	expect_failed_output 'standard output: No space left on device'
	rc=0
	device full
	"$rpma" get "$where" full >out 2>err || rc=$?
	expect_failed_output 'full: No space left on device'
	rc=0
	{ "$rpma" get "$where" - 2>err || echo $? >rc; } | head -c 10 >head
	rc=$(cat rc)
	expect_failed_output 'standard output: Broken pipe'
	rc=0
	"$rpma" get "$where" - >&- 2>err || rc=$?
	expect_failed_output 'standard output: Bad file descriptor'
}

# The next file gets the number of a closed descriptor, and messages must not go to that file.
test_closed_descriptors_bring_no_message_into_a_file() {
	local rc=0
	random_file region 100000
	cp region copy
	serve region
	stop_server
	"$rpma" serve --port "${where##*:}" region <&- >&- 2>&- &
	server=$!
	started+=("$server")
	wait_until 20 "$rpma" info "$where" >out 2>&1
	echo precious >target
	"$rpma" get --region unknown "$where" target <&- >&- 2>&- || rc=$?
	[ "$rc" = 5 ] || fail "get exits with $rc instead of 5"
	[ "$(cat target)" = precious ] || fail "the target became: $(head -c 200 target)"
	rc=0
	"$rpma" put - "$where" <&- >out 2>err || rc=$?
	[ "$rc" = 3 ] && grep -q 'standard input: Bad file descriptor' err || fail "put: $rc, $(cat err)"
	kill -TERM "$server"
	wait "$server" || [ $? = 3 ] || fail "the server does not say that its output is lost"
	cmp region copy || fail "the region became: $(head -c 200 region)"
}

# Another process made the descriptor non-blocking, as shells do for co-processes.
test_a_reader_that_is_slow_is_waited_for() {
	random_file region 1M
	serve region
	perl -e 'use Fcntl; pipe(R, W) or die; fcntl(W, F_SETFL, O_NONBLOCK | O_WRONLY) or die;
		if (fork) { close R; open(STDOUT, ">&W"); close W; exec @ARGV or die }
		close W; sleep 1; open(F, ">", "back"); print F while <R>; close F; rename("back", "whole")' \
		"$rpma" get "$where" - 2>err || fail "$(cat err)"
	wait_until 10 test -e whole
	cmp region whole || fail "something else was read"
}

test_get_writes_to_pipes_and_devices_as_they_are() {
	random_file region 1M
	serve region
	mkfifo pipe
	cat pipe >back &
	started+=("$!")
	expect_ok "$rpma" get "$where" pipe
	wait "${started[-1]}"
	cmp region back || fail "the pipe brought something else"
	[ -p pipe ] || fail "the pipe was replaced"
	device null
	ln -s null link
	expect_ok "$rpma" get "$where" null
	expect_ok "$rpma" get "$where" link
	grep -q '^get: 1048576 bytes' out || fail "no summary: $(cat out)"
	[ -c null ] && [ "$(readlink link)" = null ] || fail "the device or the link was replaced"
}

"test_$1"
