# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Foreign programs: rdma-core's programs on siw, and the same programs on the interposer at the far end of the wire.
# VM_ARGS: the pairs, as SERVER-CLIENT[-crc|-p2p], separated by commas; an end is soft or siw.
. "$VM_TREE/tests/vm/guest/lib.sh"
port=7600

# end END PROGRAM ARG...: runs the program in the environment of that end.
end() {
	local kind=$1
	shift
	case $kind in
	soft) in_far env SOFTRNIC_CRC="$crc" timeout 60 "$softrnic" run -- "$@" ;;
	siw) timeout 60 "$@" ;;
	esac
}

# both NAME SERVER_COMMAND -- CLIENT_COMMAND: runs both commands; a @ in a command becomes the port.
both() {
	local name=$1 serving=() result=0 pid word
	shift
	while [ "$1" != -- ]; do
		serving+=("$1")
		shift
	done
	shift
	port=$((port + 1))
	local log=$VM_OUT/clients-$pair.$name
	end "$server" "${serving[@]//@/$port}" >"$log.server" 2>&1 &
	pid=$!
	wait_listening $port "$server" || result=1
	[ $result != 0 ] || end "$client" "${@//@/$port}" >"$log.client" 2>&1 || result=$?
	[ $result = 0 ] || kill $pid 2>/dev/null
	wait $pid || result=1
	[ $result = 0 ] && ! grep -qE 'mismatch|completion failed' "$log.server" "$log.client" && echo "$pair $name: right" && return
	echo "FAILED: $pair $name"
	tail -n 8 "$log.server" "$log.client"
	failures=$((failures + 1))
}

rping_pair() {
	both rping rping -s -a "$(address "$server")" -p @ -V -C 5 -S 5000 -- \
		rping -c -a "$(address "$server")" -p @ -V -C 5 -S 5000
}

# perftest's server lets its client connect before the server listens. softrnic would try again, but
# siw does not, so siw's packets are delayed.
slow_siw() { tc qdisc add dev near root netem delay 100ms || fail "no netem"; }

# -R selects rdma_cm's connections, which iWARP requires.
perftest_pair() {
	local how=("$1" -R -F -n 10 -s "$2" -p @)
	both "$1" "${how[@]}" -- "${how[@]}" "$(address "$server")"
}

invalidate_pair() {
	local program=$VM_BUILD/tests/vm/verbs/verbs_invalidate
	both invalidate "$program" server "$(address "$server")" @ -- "$program" client "$(address "$server")" @
}

# In ib_write_lat the server writes first, which iWARP permits only after the client's first
# message. siw sends such a message only with peer-to-peer start-up, and softrnic waits for it.
perftests() {
	slow_siw
	if [ "$server" != soft ] || [[ $pair = *-p2p ]]; then
		perftest_pair ib_write_lat 64
	fi
	if [[ $pair != *-p2p ]]; then
		perftest_pair ib_write_bw 20000
		perftest_pair ib_read_lat 64
		perftest_pair ib_read_bw 20000
		perftest_pair ib_send_lat 64
		perftest_pair ib_send_bw 20000
	fi
	tc qdisc del dev near root
}

one_pair() {
	local pair=$1 server client crc
	pair_setup "$pair"
	capture_start "clients-$pair" "tcp portrange 7600-7799"
	rping_pair
	invalidate_pair
	perftests
	capture_stop
}

siw_up
modprobe sch_netem
failures=0
for pair in ${VM_ARGS//,/ }; do
	one_pair "$pair"
done
[ $failures = 0 ]
