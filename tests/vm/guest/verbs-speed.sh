# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Runs perftest on the kernel's rxe and siw, and on softrnic for comparison, with both ends at one address. Each round
# measures all devices in turn. $VM_OUT/verbs-speed.jsonl gets the lines (bench/README.md). VM_ARGS: the number of
# rounds.
. "$VM_TREE/tests/vm/guest/lib.sh"
ulimit -l unlimited # the kernel pins registered memory
export BENCH_BIN=$VM_BUILD/bench BENCH_SOFTRNIC=$softrnic BENCH_ADDR=10.9.1.1 BENCH_LIMIT_S=60
perftest=$VM_TREE/bench/peers/perftest.sh
lines=$VM_OUT/verbs-speed.jsonl
# This limit is less than perftest.sh's limit for a second run, because the programs take seconds to
# start here.
ms=40
missing=0

devices_up() {
	modprobe -a dummy ib_uverbs rdma_ucm siw rdma_rxe
	ip link add dummy0 type dummy 2>/dev/null # the module itself makes dummy0
	ip addr replace 10.9.1.1/24 dev dummy0
	ip link set dummy0 up
	rdma link add rxe1 type rxe netdev dummy0 || fail "no rxe1"
	rdma link add siw1 type siw netdev dummy0 || fail "no siw1"
	# In ib_write_lat the server writes first, which requires peer-to-peer start-up.
	siw_set peer_to_peer 1
	sleep 1
}

# record ROW COMMAND...: runs the command, and adds one line with the name of the row.
record() {
	local row=$1 line
	shift
	line=$("$@" 2>/tmp/record.err) || {
		echo "not measured: $row: $(tail -n 1 /tmp/record.err)"
		missing=$((missing + 1))
		return
	}
	echo "{\"row\":\"$row\",${line#\{}" >>"$lines"
}

# one_work PROGRAM SIZE RAW_WORDS...: measures one size.
one_work() {
	local work=$1 size=$2 name="$1 $2 B" words
	shift 2
	words=("work=$work" "size=$size" "ms=$ms")
	record "$name, raw TCP" "$BENCH_BIN/limit" "$@" addr=$BENCH_ADDR ms=400
	PERFTEST_DEVICE=rxe1 record "$name, rxe" "$perftest" run who=kernel identity=roce "${words[@]}"
	PERFTEST_DEVICE=siw1 record "$name, siw" "$perftest" run who=kernel identity=iwarp "${words[@]}"
	record "$name, softrnic, TCP" "$perftest" run who=softrnic "${words[@]}"
	record "$name, softrnic, TCP, no Acks" "$perftest" run who=softrnic ack=off "${words[@]}"
	record "$name, softrnic, iWARP" "$perftest" run who=softrnic identity=iwarp ack=off "${words[@]}"
	BENCH_LINK=shm record "$name, softrnic, rings" "$perftest" run who=softrnic "${words[@]}"
}

devices_up
: >"$lines"
for round in $(seq "${VM_ARGS:-2}"); do
	one_work ib_write_lat 64 work=pingpong size=96 back=96 ini=poll tgt=poll
	one_work ib_send_lat 64 work=pingpong size=96 back=96 ini=poll tgt=poll
	one_work ib_read_lat 64 work=pingpong size=32 back=96 ini=poll tgt=poll
	for work in ib_write_bw ib_send_bw ib_read_bw; do
		one_work $work 65536 work=stream size=65536
	done
	for work in ib_write_bw ib_send_bw; do
		one_work $work 8 work=stream size=8
	done
	echo "round $round: $(wc -l <"$lines") lines, $missing missing"
done
[ -s "$lines" ]
