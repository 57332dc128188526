#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Foreign verbs programs on the software RNIC, each with its own verification; one ctest for each
# test_ function and each setting of the checksums.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

test_devices() {
	need ibv_devices ibv_devinfo
	client devices ibv_devices
	said devices 'softrnic0'
	client devinfo ibv_devinfo -v -d softrnic0
	said devinfo 'transport:.*iWARP'
	said devinfo 'state:.*PORT_ACTIVE'
	said devinfo 'link_layer:.*Ethernet'
}

ping_client() {
	local name=$1
	shift
	client "$name" rping -c -V "$@"
	silent_about "$name" 'completion failed|mismatch'
}

test_rping() {
	need rping
	local port size
	for size in 64 4000 60000; do
		port=$(free_port)
		serve server $port rping -s -a 127.0.0.1 -p $port -V -C 10 -S $size
		ping_client client -a 127.0.0.1 -p $port -C 10 -S $size
		served
	done
}

# They begin one after the other: its server has one place for a request that it has not taken yet.
test_rping_serves_many() {
	need rping
	local port clients=() i
	port=$(free_port)
	serve server $port rping -s -P -a 127.0.0.1 -p $port -S 20000
	for i in 1 2 3 4; do
		ping_client client$i -a 127.0.0.1 -p $port -C 20 -S 20000 &
		clients+=($!)
		sleep 0.3
	done
	for i in "${clients[@]}"; do
		wait "$i" || fail "a client failed"
	done
	stop_server
}

test_rping_over_ipv6() {
	need rping
	[ -e /proc/net/if_inet6 ] || exit 77
	local port
	port=$(free_port)
	serve server $port rping -s -a ::1 -p $port -V -C 3
	ping_client client -a ::1 -p $port -C 3
	served
}

test_endpoints() {
	need rdma_server rdma_client
	local port
	port=$(free_port)
	serve server $port rdma_server -p $port
	client client rdma_client -s 127.0.0.1 -p $port
	served
	said client 'end 0'
}

test_endpoints_without_inline() {
	need rdma_xserver rdma_xclient
	local port
	port=$(free_port)
	serve server $port rdma_xserver -p $port
	client client rdma_xclient -s 127.0.0.1 -p $port
	served
	said client 'end 0'
}

test_ucmatose() {
	need ucmatose
	local port
	port=$(free_port)
	serve server $port ucmatose -p $port -c 20 -C 10 -S 3000
	client client ucmatose -s 127.0.0.1 -p $port -c 20 -C 10 -S 3000
	served
	said client 'return status 0'
	said server 'return status 0'
}

# Its server never ends.
test_cmtime() {
	need cmtime
	local port
	port=$(free_port)
	serve server $port cmtime -p $port -c 20
	client client cmtime -s 127.0.0.1 -p $port -c 20
	said client 'connect'
	stop_server
}

# perftest PROGRAM ARGUMENT ...: with rdma_cm, as iWARP needs it.
perftest() {
	local port
	need "$1"
	port=$(free_port)
	serve server $port "$@" -R -p $port
	client client "$@" -R -p $port 127.0.0.1
	served
}

test_ib_write_lat() { perftest ib_write_lat -n 20 -s 64; }
test_ib_read_lat() { perftest ib_read_lat -n 20 -s 4096; }
test_ib_send_lat() { perftest ib_send_lat -n 20 -s 64; }
test_ib_atomic_lat() { perftest ib_atomic_lat -n 20; }
test_ib_write_bw() { perftest ib_write_bw -n 20 -s 65536 -q 3; }
test_ib_read_bw() { perftest ib_read_bw -n 20 -s 65536 -q 3 -e; }
test_ib_send_bw() { perftest ib_send_bw -n 20 -s 65536 -q 3; }
test_ib_send_bw_both_ways() { perftest ib_send_bw -n 20 -s 1000 -b; }
test_ib_atomic_bw() { perftest ib_atomic_bw -n 20 -q 2 -A CMP_AND_SWAP; }

qperf_measure() {
	client "$2" qperf 127.0.0.1 -lp "$1" -cm1 -t 1 -m 4096 "$2"
	silent_about "$2" 'mismatch|errors'
}

test_qperf() {
	need qperf
	local port test
	port=$(free_port)
	serve server $port qperf -lp $port
	for test in rc_lat rc_bw rc_rdma_read_bw rc_rdma_write_lat ver_rc_compare_swap ver_rc_fetch_add; do
		qperf_measure $port $test
	done
	stop_server
}

# fio_pair VERB: its engine has no verification of what the other side placed.
fio_pair() {
	need fio
	local port common=(--bs=64k --size=2m --iodepth=8 --thread=1)
	fio --enghelp=rdma >/dev/null 2>&1 || exit 77
	port=$(free_port)
	serve server $port fio --name=server --ioengine=rdma --port=$port --rw=read "${common[@]}"
	client client fio --name=client --ioengine=rdma --hostname=127.0.0.1 --port=$port --verb="$1" --rw=write "${common[@]}"
	served
	said client 'err= 0'
}

test_fio_write() { fio_pair write; }
test_fio_read() { fio_pair read; }
test_fio_send() { fio_pair send; }

# -c compares the data. Its own channel, for what must be known before, has the next port.
fi_pair() {
	local port
	need fi_pingpong fi_info
	soft fi_info -p verbs >/dev/null 2>&1 || exit 77 # the machine has no address but loopback
	port=$(free_port)
	serve server $port fi_pingpong -p "$1" -e "$2" -c -I 20 -S 4096 -B $port
	client client fi_pingpong -p "$1" -e "$2" -c -I 20 -S 4096 -P $port 127.0.0.1
	served
	said client '4k'
}

test_libfabric_messages() { fi_pair verbs msg; }
test_libfabric_datagrams() { fi_pair 'verbs;ofi_rxm' rdm; }

run_test "$1"
