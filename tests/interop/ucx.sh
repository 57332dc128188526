#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# UCX's transports over RC and UD queue pairs of verbs, and UCX's protocols over these transports, by UCX's own
# benchmark.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

test_the_device_is_listed() {
	need ucx_info
	soft ucx_info -d >"$scratch/info.log" 2>/dev/null || fail "ucx_info: status $?"
	said info 'Transport: rc_verbs'
	said info 'Transport: ud_verbs'
	said info 'Device: softrnic0:1'
}

# operation NAME OPTION...: runs an operation between two processes. A Write is followed by a flush,
# so the process waits until the Write is complete at the peer.
operation() {
	local port
	port=$(free_port)
	serve server "$port" ucx_perftest -d softrnic0:1 -x rc_verbs -p "$port"
	client client ucx_perftest -d softrnic0:1 -x rc_verbs -p "$port" -t "$@" -n 300 -w 20 127.0.0.1
	served
	said client '^Final: +300 '
	silent_about client ERROR
	silent_about server ERROR
}

# protocol TRANSPORTS OPTION...: runs UCX's protocols, which choose among the transports, and
# connect RC queue pairs by datagrams. devices are UCX's devices, softrnic0:1 alone by default.
protocol() {
	local port
	port=$(free_port)
	export UCX_TLS=$1 UCX_NET_DEVICES=${devices:-softrnic0:1}
	shift
	serve server "$port" ucx_perftest -p "$port"
	client client ucx_perftest -p "$port" -t "$@" -n 300 -w 20 127.0.0.1
	served
	said client '^Final: +300 '
	silent_about client ERROR
	silent_about server ERROR
}

test_protocols() {
	need ucx_perftest
	protocol rc_v,self tag_lat -s 8
	protocol rc_v,self tag_bw -s 65536
	protocol ud_v,self tag_lat -s 8
	protocol ud_v,self tag_bw -s 65536
}

# sent_over NAME TRANSPORT: UCX reported this transport as the only one for the data of its endpoint.
sent_over() { said "$1" "ep_cfg\[0\]: [a-z]+\($2/softrnic0:1\)"; }

# UCX's name rc_v includes ud_verbs as the auxiliary transport, so that UCX ignores the one that is given in addition.
test_auxiliary_transports() {
	need ucx_perftest
	local port tls devices=softrnic0:1,lo # tcp uses lo
	export UCX_LOG_LEVEL=info
	for tls in rc_v,tcp:aux rc_v,self,sm:aux rc_verbs,ud_verbs:aux; do
		protocol $tls tag_bw -s 65536
		sent_over client rc_verbs
		sent_over server rc_verbs
	done
	# UCX's name rc_verbs does not include it, and tcp does not suffice.
	export UCX_TLS=rc_verbs,tcp:aux UCX_NET_DEVICES=$devices
	port=$(free_port)
	serve server "$port" ucx_perftest -p "$port"
	refused client 'no auxiliary transport' ucx_perftest -p "$port" -t tag_bw -n 300 -w 20 127.0.0.1
	said client 'Destination is unreachable'
	! wait "$server" || fail "the server succeeded"
}

# Open MPI uses UCX only for devices in its list, unless a setting permits any device.
test_open_mpi() {
	need mpicc mpirun
	local tls
	mpicc -O1 -o "$scratch/messages" "$(dirname "${BASH_SOURCE[0]}")/mpi_messages.c" || exit 77
	for tls in rc_v,self ud_v,self; do
		UCX_TLS=$tls UCX_NET_DEVICES=softrnic0:1 timeout 60 mpirun --allow-run-as-root --oversubscribe -np 3 \
			--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any \
			"$SOFTRNIC" run "$scratch/messages" >"$scratch/mpi.log" 2>&1 || fail "$tls: mpirun: status $?"
		said mpi '^0 numbers are wrong'
	done
}

test_messages() {
	need ucx_perftest
	operation am_lat -s 8
	operation am_bw -s 4000 -D bcopy
	operation am_bw -s 4000 -D zcopy
}

test_writes_and_reads() {
	need ucx_perftest
	operation put_lat -s 8
	operation put_bw -s 65536 -D zcopy
	operation get -s 4096 -D bcopy
	operation get -s 1048576 -D zcopy
}

test_atomics() {
	need ucx_perftest
	operation add_lat
	operation fadd
	operation cswap
}

run_test "$1"
