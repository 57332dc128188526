#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# An unmodified program can be traced. tests/system/trace has the other tests of traces.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=tests/lib/tshark.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib/tshark.sh"

# Other tests check rping's verification of data and its exit status.
test_a_foreign_program_is_traced() {
	need rping tshark
	local port opcode
	port=$(free_port)
	export SOFTRNIC_TRACE=$scratch/trace.pcapng
	serve server "$port" rping -s -a 127.0.0.1 -p "$port" -C 5 -S 4000
	soft rping -c -a 127.0.0.1 -p "$port" -C 5 -S 4000 >"$scratch/client.log" 2>&1 || :
	wait "$server" || :
	dissector -r "$SOFTRNIC_TRACE" -T fields \
		-e iwarp_mpa.key.req -e iwarp_rdma.opcode -e _ws.expert.message >"$scratch/tshark.log" || fail "tshark cannot read the trace"
	[ "$(grep -c '^4d5041' "$scratch/tshark.log")" = 1 ] || fail "not one request"
	for opcode in 0x00 0x01 0x02 0x03; do # Write, Read Request and Response, Send
		[ "$(grep -o $opcode "$scratch/tshark.log" | wc -l)" -ge 5 ] || fail "not 5 times $opcode"
	done
	silent_about tshark '[Mm]alformed|retransmission|out-of-order|not captured'
}

# Both ends write to one file, so each datagram is in the file twice, once as sent and once as
# received. The program sends with a hop limit of 1.
test_datagrams_are_traced() {
	need ibv_ud_pingpong tshark
	export SOFTRNIC_TRACE=$scratch/trace.pcapng SOFTRNIC_IDENTITY=roce
	run_pair ibv_ud_pingpong -g 0 -n 10 -s 100 || fail "ibv_ud_pingpong: $status_server, $status_client"
	dissector -r "$SOFTRNIC_TRACE" -o udp.check_checksum:TRUE -Y 'udp && data.data[0:4] == 73:52:55:44' -T fields \
		-e frame.packet_flags_direction -e udp.length -e udp.checksum.status -e ip.ttl >"$scratch/tshark.log" ||
		fail "tshark cannot read the trace"
	for way in 0x00000001 0x00000002; do # received, sent
		[ "$(grep -c "^$way"$'\t132\t1\t1$' "$scratch/tshark.log")" = 20 ] || fail "not 20 of direction $way"
	done
}

run_test "$1"
