#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# perftest, qperf and fio on the software RNIC, in many sizes, on one connection and on several. The test ignores the
# measured values. Programs that can verify the data do so.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# perftest PROGRAM ARGUMENT ...: a pair that connects with rdma_cm, which iWARP requires.
perftest() { repeat_pair has_no_rate "$@" -R; }

# latency PROGRAM: measures a tiny message, then a message of many segments.
latency() {
	perftest "$1" -n 20 -s 2
	perftest "$1" -n 10 -s 300000
}
test_ib_write_lat() { latency ib_write_lat; }
test_ib_read_lat() { latency ib_read_lat; }
test_ib_send_lat() { latency ib_send_lat; }
test_ib_atomic_lat() { perftest ib_atomic_lat -n 20 -A CMP_AND_SWAP; }

# bandwidth PROGRAM: measures a large message, then several connections.
bandwidth() {
	perftest "$1" -n 5 -s 8388608
	perftest "$1" -n 20 -s 10000 -q 5
}
test_ib_write_bw() { bandwidth ib_write_bw; }
test_ib_read_bw() { bandwidth ib_read_bw; }
test_ib_send_bw() { bandwidth ib_send_bw; }
test_ib_atomic_bw() { perftest ib_atomic_bw -n 20 -q 3; }
test_ib_read_bw_by_events() { perftest ib_read_bw -n 20 -s 65536 -e; }
test_ib_both_ways() {
	perftest ib_send_bw -n 20 -s 1000 -b
	perftest ib_write_bw -n 20 -s 100000 -b -q 2
}

# qperf_tests TEST SIZE ...: runs each test for a second, one after the other, with one server.
qperf_tests() {
	need qperf
	local port
	port=$(free_port)
	serve server "$port" qperf -lp "$port"
	while [ $# -gt 0 ]; do
		client $1-$2 qperf 127.0.0.1 -lp "$port" -to 30 -cm1 -t 1 -m $2 $1
		silent_about $1-$2 'mismatch|errors'
		shift 2
	done
	stop_server
}

test_qperf_messages() { qperf_tests rc_lat 1 rc_bw 100000 rc_bi_bw 4096 rc_lat 8; }
test_qperf_reads() { qperf_tests rc_rdma_read_lat 8 rc_rdma_read_bw 200000; }
test_qperf_writes() { qperf_tests rc_rdma_write_lat 64 rc_rdma_write_bw 1000000 rc_rdma_write_poll_lat 1; }
# The ver_ tests verify the data.
test_qperf_atomics() {
	qperf_tests rc_compare_swap_mr 8 rc_fetch_add_mr 8 ver_rc_compare_swap 8 ver_rc_fetch_add 8
}

# fio_pair VERB SIZE PORT CLIENT-ARGUMENT ...: runs a server and a client with the same size and
# verb.
fio_pair() {
	need fio
	local verb=$1 size=$2 port=$3 common
	shift 3
	fio --enghelp=rdma >/dev/null 2>&1 || exit 77
	common=(--bs="$size" --size=1m --iodepth=8 --thread=1 "$@")
	serve server$size "$port" fio --name=server --ioengine=rdma --port="$port" --rw=read "${common[@]}"
	client client$size fio --name=client --ioengine=rdma --hostname=127.0.0.1 --port="$port" --verb="$verb" \
		--rw=write --do_verify=0 "${common[@]}"
	served
	said client$size 'err= 0'
	said server$size 'err= 0'
}

# fio_sizes VERB ARGUMENT ...: runs all sizes at the same time, each with its own server.
fio_sizes() {
	local verb=$1 port size running=()
	shift
	port=$(free_port)
	for size in 512 16k 512k; do
		fio_pair "$verb" $size $port "$@" &
		running+=($!)
		port=$((port + 1))
	done
	for size in "${running[@]}"; do
		wait "$size" || fail "fio $verb"
	done
}

test_fio_write() { fio_sizes write; }
test_fio_read() { fio_sizes read; }
# The server receives the client's data and verifies the checksums in the data.
test_fio_send_and_receive() { fio_sizes send --verify=crc32c; }

run_test "$1"
