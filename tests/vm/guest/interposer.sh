# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The interposer on a kernel with an RDMA device: siw has the address 10.9.0.1, and no device has
# 127.0.0.1.
. "$VM_TREE/tests/vm/guest/lib.sh"

# expect_devices NAME...: the programs must list exactly these devices, in this order.
expect_devices() {
	local seen
	seen=$("$softrnic" run -- ibv_devices | awk 'NR > 2 { print $1 }' | tr '\n' ' ')
	[ "$seen" = "$* " ] || fail "devices $seen instead of $*"
	echo "devices: $seen"
}

# rping_over ADDRESS PORT: runs a server and a client on the interposer. $siw_ids and $siw_qps
# become the numbers of ids and queue pairs of siw in the kernel, and $sockets the number of sockets
# of the server itself.
rping_over() {
	"$softrnic" run -- rping -s -a "$1" -p "$2" -V -C 300 >server 2>&1 &
	local server=$! client
	wait_listening "$2" || fail "rping -s $1: $(cat server)"
	"$softrnic" run -- rping -c -a "$1" -p "$2" -V -C 300 >client 2>&1 &
	client=$!
	for _ in $(seq 100); do
		grep -qi "$(printf ':%04X [0-9A-F]*:[0-9A-F]* 01' "$2")" /proc/net/tcp && break
		sleep 0.1
	done
	siw_ids=$(rdma resource show cm_id | grep -c "$1:$2")
	siw_qps=$(rdma resource show qp | grep -c rping)
	sockets=$(find "/proc/$server/fd" -lname 'socket:*' | wc -l)
	wait $client || fail "rping -c $1: $(tail -n 3 client server)"
	wait $server || fail "rping -s $1: $(tail -n 3 client server)"
	echo "$1: $siw_ids ids and $siw_qps queue pairs of siw, $sockets sockets"
}

siw_up
expect_devices siw0 softrnic0
SOFTRNIC_HARDWARE=0 expect_devices softrnic0
"$softrnic" run -- ibv_devinfo >devinfo || fail "ibv_devinfo"
cat devinfo
rping_over 127.0.0.1 7501
[ "$siw_ids $siw_qps" = "0 0" ] && [ "$sockets" -gt 0 ] || fail "127.0.0.1 is not served by softrnic"
rping_over 10.9.0.1 7502
[ "$siw_ids" -gt 0 ] && [ "$siw_qps" = 2 ] && [ "$sockets" = 0 ] || fail "10.9.0.1 is not served by siw"
SOFTRNIC_HARDWARE=0 rping_over 10.9.0.1 7503
[ "$siw_ids $siw_qps" = "0 0" ] || fail "siw is used although it is hidden"
"$softrnic" run -- "$VM_BUILD/tests/vm/verbs/verbs_both" 10.9.0.1 siw0 127.0.0.1 softrnic0 || fail "both at once"
"$softrnic" run -- "$VM_BUILD/tests/interop/interop_calls" || fail "calls"
