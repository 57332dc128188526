# SPDX-License-Identifier: BSD-3-Clause
# Functions shared by the jobs in the guest.
# shellcheck shell=bash

fail() {
	echo "FAILED: $*"
	exit 1
}

# siw_up: makes a wire between this network namespace, in which siw has 10.9.0.1, and the namespace
# "far", in which 10.9.0.2 is a plain network interface, for softrnic.
siw_up() {
	modprobe -a veth siw ib_uverbs rdma_ucm
	ip netns add far 2>/dev/null || { mkdir -p /run/netns && ip netns add far; }
	ip link add near type veth peer name far netns far
	ip addr add 10.9.0.1/24 dev near
	ip -n far addr add 10.9.0.2/24 dev far
	ip link set near up
	ip -n far link set lo up
	ip -n far link set far up
	rdma link add siw0 type siw netdev near
}

in_far() { ip netns exec far "$@"; }

# user_net_up: makes the interface to the outside, which is the target of vm_forward in
# tests/vm/boot.sh.
user_net_up() {
	modprobe virtio_net
	ip addr add 10.0.2.15/24 dev eth0
	ip link set eth0 up
}

# siw_set NAME VALUE: sets one of siw's switches.
siw_set() { echo "$2" >"/sys/module/siw/parameters/$1"; }

# pair_setup SERVER-CLIENT[-crc|-p2p]: sets $server and $client, and siw's parameters for this pair.
# An end named `soft` is at the far end of the wire; an end of any other name is on siw.
pair_setup() {
	local rest=${1#*-} how
	server=${1%%-*} client=${rest%%-*}
	how=${rest#"$client"}
	crc=off
	siw_set mpa_crc_required 0
	siw_set peer_to_peer 0
	case $how in
	-crc) crc=on && siw_set mpa_crc_required 1 ;;
	-p2p) siw_set peer_to_peer 1 ;;
	esac
}

# address END: prints the end's address.
address() { [ "$1" = soft ] && echo 10.9.0.2 || echo 10.9.0.1; }

# The interposer's launcher.
softrnic=$VM_BUILD/src/interposer/softrnic

# wait_listening PORT [soft]: waits until a program listens at the port, at the far end of the wire
# if it is softrnic. siw's listeners are sockets of the kernel, so they are in the kernel's table,
# too.
wait_listening() {
	local where=()
	[ "${2:-}" != soft ] || where=(in_far)
	for _ in $(seq 150); do
		! "${where[@]}" cat /proc/net/tcp | grep -qi "$(printf ':%04X 0*:0000 0A' "$1")" || return 0
		sleep 0.2
	done
	return 1
}

# nvdimm_up: mounts the persistent memory at /pmem, and formats it first if it is new.
nvdimm_up() {
	modprobe -a nfit nd_pmem ext4
	for _ in $(seq 50); do
		[ -e /dev/pmem0 ] || [ -e /sys/bus/nd/devices/namespace0.0 ] && break
		sleep 0.1
	done
	if ! ndctl list -N | grep -q '"mode":"fsdax"'; then
		ndctl create-namespace -f -e namespace0.0 -m fsdax -M mem >/dev/null
	fi
	for _ in $(seq 50); do
		[ -e /dev/pmem0 ] && break
		sleep 0.1
	done
	mkdir -p /pmem
	mount -t ext4 -o dax=always /dev/pmem0 /pmem 2>/dev/null && return 0
	mkfs.ext4 -q -b 4096 /dev/pmem0
	mount -t ext4 -o dax=always /dev/pmem0 /pmem
}

# disk_up: mounts an ordinary disk at /disk.
disk_up() {
	modprobe -a virtio_blk ext4
	mkdir -p /disk
	mount -t ext4 /dev/vda /disk 2>/dev/null && return 0
	mkfs.ext4 -q -b 4096 /dev/vda
	mount -t ext4 /dev/vda /disk
}

# wait_line FILE TEXT SECONDS: waits until the file has a line with TEXT.
wait_line() {
	for _ in $(seq $(($3 * 10))); do
		grep -qsF "$2" "$1" && return 0
		sleep 0.1
	done
	return 1
}

# capture_start NAME FILTER: captures the packets of the wire into $VM_OUT/NAME.pcap.
capture_start() {
	local name=$1
	shift
	capture_file=/tmp/$name.pcap
	tcpdump -Z root -B 65536 -U -i near -s 0 -w "$capture_file" "$@" 2>/tmp/tcpdump.log &
	capture_pid=$!
	wait_line /tmp/tcpdump.log "listening on" 30 || fail "tcpdump does not begin: $(cat /tmp/tcpdump.log)"
}

capture_stop() {
	sleep 2 # tcpdump writes captured packets in blocks, after a second at the latest
	kill -INT "$capture_pid"
	wait "$capture_pid"
	grep -q '^0 packets dropped by kernel' /tmp/tcpdump.log || fail "packets are missing: $(cat /tmp/tcpdump.log)"
	cp "$capture_file" "$VM_OUT/"
	rm "$capture_file"
}
