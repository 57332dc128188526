# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# softrnic and siw, each as client and as server. VM_ARGS: the pairs, as SERVER-CLIENT[-crc|-p2p],
# separated by commas. An end is
#   soft    this librpma on softrnic, at the far end of the wire
#   near    this librpma on softrnic, at siw's end of the wire
#   siw     this librpma on siw
#   debian  Debian's librpma on siw
. "$VM_TREE/tests/vm/guest/lib.sh"

programs=$VM_BUILD/tests/vm/pair
port=7300

# end END PROGRAM ARG...: runs the program in the environment of that end.
end() {
	local kind=$1
	shift
	case $kind in
	soft) in_far env RPMA_PROVIDER=softrnic SOFTRNIC_CRC="$crc" "$@" ;;
	near) env RPMA_PROVIDER=softrnic SOFTRNIC_CRC="$crc" "$@" ;;
	siw) env RPMA_PROVIDER=verbs "$@" ;;
	debian) env LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu "$@" ;;
	esac
}

one_pair() {
	local pair=$1 server client crc result=0
	pair_setup "$pair"
	port=$((port + 1))
	echo "--- $pair"
	# The "listening" of an earlier run must not be mistaken for this run's "listening".
	rm -f "$VM_OUT/$pair.server" "$VM_OUT/$pair.client"
	capture_start "$pair" "tcp port $port"
	end "$server" "$programs/pair_server" "$(address "$server")" $port 13 >"$VM_OUT/$pair.server" 2>&1 &
	local pid=$!
	wait_line "$VM_OUT/$pair.server" listening 20 || result=1
	end "$client" timeout 320 "$programs/pair_client" "$(address "$server")" $port >"$VM_OUT/$pair.client" 2>&1 ||
		result=1
	[ $result = 0 ] || kill $pid 2>/dev/null
	wait $pid || result=1
	capture_stop
	if [ $result != 0 ]; then
		echo "FAILED: $pair"
		tail -n 8 "$VM_OUT/$pair.server" "$VM_OUT/$pair.client"
		failures=$((failures + 1))
	fi
}

siw_up
failures=0
for pair in ${VM_ARGS//,/ }; do
	one_pair "$pair"
done
[ $failures = 0 ]
