#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An interrupted put, and the next put to the same place: acknowledged bytes of the next put stay on the medium,
# although bytes of the first put are still under way. SYSTEM_ROUNDS: number of rounds (1).
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/system/lib/hosts.sh
. "$(dirname "$0")/../lib/hosts.sh"

# The first put must take longer than the time until the network is cut.
FIRST=64M
SECOND=16M
rounds=${SYSTEM_ROUNDS:-1}

# serve_on_host_1 [OPTIONS] REGION...: starts the server on host 1.
serve_on_host_1() {
	start_on 1 serve.log "$rpma" serve --addr 10.77.0.1 --port 7204 --create --size "$FIRST" "$@"
	server=$!
	wait_until 20 grep -qs 'serving' serve.log || fail "the server does not start"
}

# interrupted NAME [OPTIONS]: starts a put to the region NAME, and returns while the put is under
# way.
interrupted() {
	local name=$1
	shift
	start_on 2 "$name.first" "$rpma" put "$@" first "10.77.0.1:$name"
	putters[$name]=$!
}

# put_again NAME: starts the next put. The server refuses it as long as bytes of the first put can
# still be placed, so the put is repeated until it prints "done".
put_again() { # NAME
	local end=$((SECONDS + 60)) rc
	until on 2 "$rpma" put -o 0 second "10.77.0.1:$1" >"$1.out" 2>"$1.err"; do
		rc=$?
		[ "$rc" = 5 ] && grep -q 'another client writes' "$1.err" || fail "$1: the second put ends with $rc: $(cat "$1.err")"
		[ "$SECONDS" -lt "$end" ] || fail "$1: the second put is refused for too long"
		sleep 0.1
	done
	cmp -n "$SECOND" second "$1" || fail "$1: not what was put and verified"
}

interrupt_all() {
	local name pids=()
	declare -gA putters=()
	network delay 2 1 50 # so that many bytes are under way
	for name in killed control-c gave-up; do
		interrupted "$name" -o 0 -t "$([ "$name" = gave-up ] && echo 1 || echo 60)"
	done
	interrupted file
	for name in killed control-c gave-up file; do
		wait_until 20 cmp -s -n 200000 first "$name" || fail "$name: nothing arrives"
	done
	network cut '*' '*'
	kill -9 "${putters[killed]}" "${putters[file]}"
	kill -INT "${putters[control-c]}"
	sleep 1.8
	wait_until 20 is_gone "${putters[gave-up]}" || fail "the putter does not give up"
	network heal '*' '*'
	for name in killed control-c gave-up file; do
		put_again "$name" &
		pids+=("$!")
	done
	for name in "${pids[@]}"; do
		wait "$name" || exit 1
	done
	sleep 3 # the kernel's next retransmissions
	for name in killed control-c gave-up file; do
		cmp -n "$SECOND" second "$name" || fail "$name: bytes of the first put are over those of the second"
		rm "$name.first"
	done
}

test_nothing_of_an_interrupted_put_lands_over_the_next_one() {
	local round
	hosts_start 2
	head -c "$FIRST" /dev/zero | tr '\0' 1 >first
	head -c "$SECOND" /dev/zero | tr '\0' 2 >second
	serve_on_host_1 killed control-c gave-up file
	for ((round = 0; round < rounds; round++)); do
		interrupt_all
	done
}

# A put that only pauses has not ended, so no other put gets its range.
test_a_range_belongs_to_the_put_that_stands_still() {
	serve pool --create --size 12M
	random_file bytes 4M
	mkfifo stream
	"$rpma" put -o 4M - "$where:pool" <stream >slow.out 2>slow.err &
	started+=("$!")
	exec 6>stream
	head -c 1M bytes >&6
	wait_until 20 cmp -s -n 500000 bytes <(tail -c +4194305 pool) || fail "nothing arrives: $(cat slow.err)"
	expect 5 'another client writes' "$rpma" put -o 5M bytes "$where:pool"
	expect_ok "$rpma" put -o 0 bytes "$where:pool"
	exec 6>&-
	wait "${started[-1]}" || fail "the first put: $(cat slow.err)"
	expect_ok "$rpma" put -o 4M bytes "$where:pool"
	cmp -n 4M bytes <(tail -c +4194305 pool) || fail "something else is there"
}

"test_$1"
