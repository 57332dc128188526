#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that exchange the numbers of their queue pairs and GIDs themselves, and use no rdma_cm: rdma-core's examples
# and perftest. The end that dials is random, because the kernel chooses the ports that the numbers contain. Each pair
# runs over rings, which are the default, and over TCP.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export SOFTRNIC_IDENTITY=roce

# pair PROGRAM ARGUMENT ...: runs a pair, and fails the test unless both ends succeed.
pair() { run_pair "$@" || fail "$*: server $status_server, client $status_client"; }
over_both() {
	SOFTRNIC_SHM_AFTER=0 pair "$@"
	SOFTRNIC_SHM=0 pair "$@"
}

test_rc_pingpong() {
	for _ in 1 2 3; do
		over_both ibv_rc_pingpong -g 0 -n 100
		said client '[0-9]+ bytes in .* seconds'
	done
	over_both ibv_rc_pingpong -g 0 -n 20 -e -s 1
	over_both ibv_rc_pingpong -g 0 -n 20 -e -c -s 1048576
}

test_uc_pingpong() {
	over_both ibv_uc_pingpong -g 0 -n 100
	over_both ibv_uc_pingpong -g 0 -n 20 -e -s 1048576
	said client '[0-9]+ bytes in .* seconds'
}

# After the last message that it counts, ibv_srq_pingpong sends up to one further message for each other queue pair. The
# end that has counted all messages destroys its queue pairs while these further messages are under way. They fail after
# the retries, when the other end has ended, too.
test_srq_pingpong() {
	over_both ibv_srq_pingpong -g 0 -n 100 -q 16
	over_both ibv_srq_pingpong -g 0 -n 20 -e -s 100000 -q 3
}

# A datagram can be lost. These programs send no datagram for which the peer has no receive.
test_ud_pingpong() {
	pair ibv_ud_pingpong -g 0 -n 100
	said client '[0-9]+ bytes in .* seconds'
	pair ibv_ud_pingpong -g 0 -n 100 -e -s 1
	SOFTRNIC_GIDS=::1 pair ibv_ud_pingpong -g 0 -n 20
}

# perftest PROGRAM ARGUMENT ...: runs a pair, again if perftest could not measure the processor's
# clock.
perftest() { repeat_pair has_no_rate "$@" -F; }
perftest_both() {
	SOFTRNIC_SHM_AFTER=0 perftest "$@"
	SOFTRNIC_SHM=0 perftest "$@"
}
test_perftest_write() {
	perftest_both ib_write_lat -n 20
	perftest_both ib_write_bw -n 20 -q 4
	said client 'Link type *: Ethernet'
}
test_perftest_read() {
	perftest_both ib_read_lat -n 20
	perftest_both ib_read_bw -n 20 -q 2
}
test_perftest_send() {
	perftest_both ib_send_lat -n 20
	perftest_both ib_send_bw -n 20 -q 2
	perftest_both ib_send_bw -n 20 -b
	perftest_both ib_send_bw -n 20 --use-srq -q 2
}
test_perftest_datagrams() {
	perftest ib_send_lat -c UD -n 20
	perftest ib_send_lat -c UD -n 20 -e
	perftest ib_send_bw -c UD -n 1000 -s 4096
}
test_perftest_atomic() {
	perftest_both ib_atomic_lat -n 20
	perftest_both ib_atomic_bw -n 20 -A CMP_AND_SWAP
}
test_perftest_unreliable() {
	for program in ib_send_lat ib_send_bw ib_write_lat ib_write_bw; do
		perftest_both $program -c UC -n 20
	done
	perftest ib_send_bw -c UC -n 20 -q 2 -e
}
test_perftest_events_and_time() {
	perftest ib_send_lat -n 20 -e
	perftest ib_write_bw -D 1
}

# The server's network namespace has its own loopback, and the address from which the server's GIDs
# are made.
test_two_hosts() {
	local port=19515 there
	need ibv_rc_pingpong ibv_ud_pingpong ib_write_lat ip
	own_network
	second_host
	for program in "ibv_rc_pingpong -g 0 -n 50" "ibv_ud_pingpong -g 0 -n 50 -s 4000" "ib_write_lat -F -n 20" "ib_send_bw -F -n 20"; do
		# shellcheck disable=SC2086 # words
		at_second_host=$there serve server $port $program -p $port
		# shellcheck disable=SC2086 # words
		client client $program -p $port 10.77.0.2
		served
		said client '10.77.0.1|10:77:00:01'
		port=$((port + 1))
	done
}

run_test "$1"
