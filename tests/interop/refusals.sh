#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Features that the software RNIC lacks: each program that needs such a feature ends with its own
# error message.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# pingpong PROGRAM [OPTION ...]: runs both ends; each must report that a queue pair cannot be
# modified, and end.
pingpong() {
	need "$1"
	local port
	port=$(free_port)
	serve server $port "$@" -p $port
	status=0
	soft "$@" -p $port 127.0.0.1 >"$scratch/client.log" 2>&1 || status=$?
	[ $status -eq 1 ] || fail "client: status $status"
	status=0
	wait "$server" || status=$?
	[ $status -eq 1 ] || fail "server: status $status"
	said server 'Failed to modify QP(\[0\])? to RTR'
}

# Without a GID the program needs the peer's LID, and no peer on a RoCE device has one.
test_pingpong_without_a_gid() {
	pingpong ibv_rc_pingpong
	said server 'the peer is named by its LID alone, .* softrnic-verbs\(7\)'
}

# On an iWARP device programs can create queue pairs, but cannot connect them without rdma_cm,
# because the device's GID is no address.
test_pingpong_on_iwarp() {
	export SOFTRNIC_IDENTITY=iwarp
	pingpong ibv_rc_pingpong -g 0
}

test_perftest_on_iwarp() {
	need ib_write_lat
	local port status=0
	export SOFTRNIC_IDENTITY=iwarp
	port=$(free_port)
	serve server $port ib_write_lat -F -p $port
	soft ib_write_lat -F -p $port 127.0.0.1 >"$scratch/client.log" 2>&1 || status=$?
	[ $status -ne 0 ] || fail "the client succeeded"
	wait "$server" && fail "the server succeeded"
	said server 'queue pairs without rdma_cm need the device that looks like RoCE: .* softrnic-verbs\(7\)'
}

# On an iWARP device programs cannot even create unreliable queue pairs.
test_unreliable_on_iwarp() {
	need ibv_uc_pingpong
	export SOFTRNIC_IDENTITY=iwarp
	refused uc "Couldn't create QP" ibv_uc_pingpong
}

# The client of ibv_srq_pingpong does not end when the server has ended.
test_srq_pingpong_on_iwarp() {
	need ibv_srq_pingpong
	local port status=0
	export SOFTRNIC_IDENTITY=iwarp
	port=$(free_port)
	serve server $port ibv_srq_pingpong -g 0 -p $port
	behind client ibv_srq_pingpong -g 0 -p $port 127.0.0.1
	wait "$server" || status=$?
	[ $status -eq 1 ] || fail "server: status $status"
	said server 'Failed to modify QP(\[0\])? to RTR'
	# The sixteen queue pairs of the server get one explanation.
	[ "$(grep -c 'see softrnic-verbs' "$scratch/server.log")" = 1 ] || fail "not explained once"
}

test_datagrams() {
	need ibv_ud_pingpong mckey
	SOFTRNIC_IDENTITY=iwarp refused ud "Couldn't create QP" ibv_ud_pingpong
	refused mckey 'failure joining: Function not implemented' mckey -m 239.1.1.1 -b 127.0.0.1 -s
}

test_xrc() {
	need ibv_xsrq_pingpong rdma_xserver
	refused xrc "Couldn't Open the XRC Domain 95" ibv_xsrq_pingpong
	refused xserver 'rdma_create_ep: Protocol not supported' rdma_xserver -c x
}

# perftest_refuses PROGRAM TYPE TEXT: both ends must report that they have no queue pairs of this
# type, and end. The server ends when the client has connected.
perftest_refuses() {
	local port status=0
	port=$(free_port)
	behind server "$1" -F -c "$2" -p "$port"
	server=$!
	await_listener "$port" || : # the server may have ended
	refused client "$3" "$1" -F -c "$2" -p "$port" 127.0.0.1
	wait $server || status=$?
	[ $status -eq 1 ] || fail "server: status $status"
	said server "$3"
}

# The types of queue pairs that perftest supports on other devices. It refuses some combinations of
# a program and a type on every device; then the server ends before it listens.
test_types_of_perftest() {
	need ib_write_bw ib_send_bw
	local files=/tmp/xrc_domain_ # perftest makes these files, and does not remove them
	rm -f ${files}server ${files}client 2>/dev/null || : # those of another user remain
	perftest_refuses ib_write_bw XRC "Couldn't create XRC resources"
	perftest_refuses ib_send_bw XRC "Couldn't create XRC resources"
	rm -f ${files}server ${files}client 2>/dev/null || :
	perftest_refuses ib_write_bw DC 'Unable to create QP'
	perftest_refuses ib_send_bw DC 'Unable to create QP'
	perftest_refuses ib_write_bw SRD 'SRD connection only possible in SEND/READ verbs'
	perftest_refuses ib_send_bw SRD 'Unable to create QP'
}

test_raw_ethernet() {
	need raw_ethernet_bw raw_ethernet_lat
	local program end
	for program in raw_ethernet_bw raw_ethernet_lat; do
		for end in server client; do
			refused $program-$end 'Unable to create QP' \
				$program --$end -B 02:00:00:00:00:01 -E 02:00:00:00:00:02
		done
	done
}

test_rsockets() {
	need rstream
	refused rstream 'rsocket.*: Protocol not supported' rstream -s 127.0.0.1
}

run_test "$1"
