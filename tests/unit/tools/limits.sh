#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Limits of the rpma program for peers and devices.
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/../../system/tool/lib.sh"

test_a_line_of_output_that_is_lost_is_an_error() {
	local rc=0
	serve pool --create --size 1M
	random_file data 65536
	"$rpma" put --verbose --flush-every 4K data "$where" >/dev/full 2>err || rc=$?
	[ "$rc" = 3 ] || fail "the exit code is $rc instead of 3"
	grep -q 'cannot write the output' err || fail "it does not say so: $(cat err)"
}

test_names_of_peers_cannot_drive_the_terminal() {
	local evil=$'a\e[31mb'
	serve pool --create --size 1M --region "$evil"
	random_file data 100
	expect 5 "does not serve a region 'x.y'; it serves 'a.\[31mb'" \
		"$rpma" put --region $'x\ry' data "$where"
	expect_ok "$rpma" put data "$where"
	! grep -q $'\e' out err serve.err || fail "an escape character came through"
	grep -q 'requests an unknown region: x?y' serve.err || fail "the refusal is not logged"
}

# Bytes within the shortened file are not acknowledged either, because other bytes may have been
# lost, and the server cannot find out which.
test_bytes_for_a_truncated_file_are_not_acknowledged() {
	serve pool --create --size 64K
	truncate -s 1000 pool
	random_file data 3000
	expect 5 'was truncated while it was served' "$rpma" put data "$where"
	head -c 1000 data >less
	expect 5 'was truncated while it was served' "$rpma" put less "$where"
}

# Without an RDMA device the server ends directly after that, so the test need not stop it.
test_an_existing_file_is_on_the_disk_before_it_is_offered() {
	truncate -s 64K pool
	strace -f -e trace=fsync -o trace env RPMA_PROVIDER=verbs "$rpma" serve --port 0 pool \
		>out 2>err || :
	grep -q exited trace || exit 77 # strace is missing, or is not permitted to trace
	grep -q 'no RDMA device' err || exit 77
	[ "$(grep -c 'fsync(' trace)" = 2 ] || fail "file and folder were not synced: $(cat trace)"
}

test_a_senseless_size_costs_no_memory() {
	serve pool --create --size 1M
	(
		ulimit -v 1000000
		expect 5 "larger than the server's scratch" "$rpma" ping --size 16G "$where"
	)
}

# unwelcome_guest: sends a start-up request of revision 1 without a greeting. The connection stays
# open in $guest.
unwelcome_guest() {
	exec {guest}<>"/dev/tcp/127.0.0.1/${where##*:}"
	printf 'MPA ID Req Frame\x00\x01\x00\x00' >&"$guest"
}

test_refused_clients_take_no_place_away() {
	serve pool --create --size 1M --max-clients 1
	random_file data 100
	unwelcome_guest
	wait_until 10 grep -q 'refused client 1' serve.err || fail "the guest was not refused"
	expect_ok "$rpma" put data "$where"
}

test_refused_clients_get_the_reason_up_to_a_limit() {
	local guests=() flags=()
	# Each peer must get its reason before the connections of the first peers are dropped.
	SOFTRNIC_DRAIN_MS=20000 serve pool --create --size 1M
	for _ in {1..80}; do
		unwelcome_guest
		guests+=("$guest")
	done
	for guest in "${guests[@]}"; do
		flags+=("$(head -c 17 <&"$guest" | tail -c 1 | od -An -tx1)")
	done
	# 0x20 is the reply's reject bit.
	[ "${flags[0]}" = ' 00' ] || fail "the first was not told why: ${flags[0]}"
	[ "${flags[-1]}" = ' 20' ] || fail "the last was not rejected: ${flags[-1]}"
	random_file data 100
	expect_ok "$rpma" put data "$where"
}

"test_$1"
