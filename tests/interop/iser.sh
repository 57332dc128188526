#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Storage over RDMA (iSER), with both ends on the software RNIC. tgtd offers a file as a disk, and
# libiscsi, alone and in qemu's tools, reads and writes it.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

target=iqn.2026-11.example:disk
# tgtd permits an initiator by its name and by its address.
initiators=(iqn.2008-11.org.linux-kvm
	iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-{inq,readcapacity16,ls})

target_command() { "${as_user[@]}" tgtadm --lld iser --mode "$@" >>"$scratch/tgtadm.log" 2>&1 || fail "tgtadm $*"; }

# tgtd listens before it accepts commands.
wait_until_it_obeys() {
	for _ in {1..200}; do
		! "${as_user[@]}" tgtadm --lld iser --mode sys --op show >/dev/null 2>&1 || return 0
		sleep 0.05
	done
	fail "tgtd takes no commands"
}

# target_with SIZE: starts tgtd with a disk in the file $scratch/disk, at $url.
target_with() {
	need tgtd tgtadm iscsi-inq iscsi-readcapacity16 qemu-img qemu-io
	local port name
	port=$(free_port)
	"${as_user[@]}" truncate -s "$1" "$scratch/disk"
	export TGT_IPC_SOCKET=$scratch/tgtd
	serve tgtd $((port + 1)) tgtd -f --iscsi portal=127.0.0.1:$port --iser port=$((port + 1))
	wait_until_it_obeys
	target_command target --op new --tid 1 -T $target
	target_command logicalunit --op new --tid 1 --lun 1 -b "$scratch/disk"
	target_command target --op bind --tid 1 -I ALL
	for name in "${initiators[@]}"; do
		target_command target --op bind --tid 1 -Q "$name"
	done
	url=iser://127.0.0.1:$((port + 1))/$target/1
}

# tgtd ends only by SIGKILL. Its own command to end waits for ever, because it waits for an event
# (the end of time-wait) that only InfiniBand has.
target_ends() {
	local pid
	pid=$(pgrep -P "$server") || fail "the target is gone"
	kill -KILL "$pid"
	wait "$server" || :
}

# initiator NAME PROGRAM ...: runs the program as a client. libiscsi 1.19 allocates the state of an
# iSER connection without clearing it, and uses a pointer in it: if the memory was used before, the
# program crashes. With this setting glibc clears allocated memory.
initiator() { MALLOC_PERTURB_=255 client "$@"; }

test_disk_is_found() {
	target_with 8M
	initiator inquiry iscsi-inq "$url"
	said inquiry 'Product:VIRTUAL-DISK'
	initiator capacity iscsi-readcapacity16 "$url"
	said capacity 'Total size:8388608'
	target_ends
}

# qemu-io writes pieces below 256 KiB, because libiscsi has a buffer of that size for each command,
# and crashes beyond it.
test_disk_keeps_what_was_written() {
	target_with 8M
	head -c 8M /dev/urandom >"$scratch/data"
	initiator to qemu-img dd -f raw -O raw bs=128k if="$scratch/data" of="$url"
	cmp "$scratch/data" "$scratch/disk" || fail "the disk has something else"
	initiator from qemu-img dd -f raw -O raw bs=96k if="$url" of="$scratch/back"
	cmp "$scratch/data" "$scratch/back" || fail "something else is read"
	target_ends
}

# patterns NAME MIB: writes pieces of several sizes from the offset MIB on, reads each piece back,
# and compares it.
patterns() {
	local name=$1 at=$2 commands=() size
	for size in 512 4k 64k 200k 256k; do
		commands+=(-c "write -P $at ${at}M $size" -c "read -P $at ${at}M $size")
	done
	commands+=(-c "writev -P 77 ${at}M 4k 512 8k 64k" -c "readv -P 77 ${at}M 512 4k 64k 8k" -c flush
		-c "read -P $at -s 78336 -l 178k ${at}M 256k")
	initiator "$name" qemu-io -f raw "${commands[@]}" "$url"
	silent_about "$name" 'failed|rror'
}

test_disk_serves_several_initiators() {
	target_with 8M
	local i running=()
	for i in 1 2 3 4; do
		patterns initiator$i $i &
		running+=($!)
	done
	for i in "${running[@]}"; do
		wait "$i" || fail "an initiator failed"
	done
	target_ends
}

# Keeps many commands in flight on one connection.
test_disk_is_kept_busy() {
	target_with 8M
	initiator writes qemu-img bench -f raw -w --pattern 85 -c 512 -d 32 -s 16k "$url"
	initiator reads qemu-img bench -f raw -c 512 -d 32 -s 16k "$url"
	initiator check qemu-io -f raw -c 'read -P 85 0 256k' -c 'read -P 85 7936k 256k' "$url"
	silent_about check 'failed|rror'
	target_ends
}

run_test "$1"
