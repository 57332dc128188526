# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# DRBD 8.4 of Debian's kernel under the same cuts as the mirror. Two guests each have a node of one device, whose ext4
# has the file that the writer changes. The disk of a guest without power is checked from outside; the file is checked
# in the guest that continues.

declare -A drbd_pid=() drbd_orders=()
drbd_dir=
drbd_pair_ports=

# vm_fetch_drbd: unpacks Debian's tools for DRBD, and does not install them.
vm_fetch_drbd() {
	local tree=$vm_cache/drbd-utils tmp=$vm_cache/drbd-utils.new version
	version=$(apt-cache show drbd-utils 2>/dev/null | sed -n 's/^Version: //p' | head -n 1)
	[ "$version" ] || die "apt knows no drbd-utils: is this Debian 12, and apt-get update done?"
	[ "$(cat "$tree/stamp" 2>/dev/null)" != "$version" ] || return 0
	say "fetching drbd-utils $version"
	rm -rf "$tmp" "$tree"
	mkdir -p "$tmp/x" "$tmp/tree/usr/sbin" "$tmp/tree/usr/lib/drbd" "$tmp/tree/var/lib/drbd" "$tmp/tree/var/lock"
	(cd "$tmp" && apt-get -q download "drbd-utils=$version") >"$vm_cache/drbd-utils.log" 2>&1 ||
		die "drbd-utils cannot be fetched: $(tail -n 1 "$vm_cache/drbd-utils.log")"
	dpkg -x "$tmp"/*.deb "$tmp/x"
	mv "$tmp"/x/sbin/{drbdadm,drbdmeta,drbdsetup} "$tmp/tree/usr/sbin/"
	mv "$tmp"/x/lib/drbd/*-84 "$tmp/tree/usr/lib/drbd/"
	echo "$version" >"$tmp/tree/stamp"
	mv "$tmp/tree" "$tree"
	rm -rf "$tmp"
}

# vm_with_drbd WORD...: runs the words of ./dev vm with guests that have DRBD.
vm_with_drbd() {
	local vm_initramfs=initramfs-drbd vm_modules=("${vm_modules[@]}" drbd) vm_trees=("$vm_cache/drbd-utils")
	vm_locked vm_fetch_drbd
	vm_locked vm_build_initramfs
	"$@"
}

drbd_end() {
	local node
	for node in "${!drbd_pid[@]}"; do
		drbd_cut "$node"
	done
}

# drbd_cut NODE: cuts the node's power.
drbd_cut() {
	local vm_qemu_pid=${drbd_pid[$1]}
	unset "drbd_pid[$1]"
	vm_kill
}

# drbd_boot NODE: boots a node. The guests exchange datagrams instead of a cable, so that no guest
# notices the end of the other guest.
drbd_boot() {
	local node=$1 vm_qemu_pid='' vm_log='' vm_forward='' vm_out=$drbd_dir/$1 vm_disks=$drbd_dir/$1/disks here there
	read -r here there <<<"$drbd_pair_ports"
	[ "$node" = a ] || read -r there here <<<"$drbd_pair_ports"
	local vm_more_devices=(-netdev "socket,id=pair,udp=127.0.0.1:$there,localaddr=127.0.0.1:$here"
		-device "virtio-net-pci,netdev=pair,mac=52:54:00:00:08:0$node")
	mkdir -p "$vm_disks"
	# The disk is small, because a primary that lost its power gets nearly the whole disk again.
	[ -e "$vm_disks/disk" ] || truncate -s 64M "$vm_disks/disk"
	rm -f "$vm_out"/{reply,output}.*
	: >"$vm_out/orders"
	drbd_orders[$node]=0
	vm_boot drbd "$node"
	drbd_pid[$node]=$vm_qemu_pid
}

# drbd_try NODE COMMAND: runs the command in the guest, and prints its output.
drbd_try() {
	local node=$1 n end=$((SECONDS + 600))
	n=$((drbd_orders[$node] + 1))
	drbd_orders[$node]=$n
	echo "$2" >>"$drbd_dir/$node/orders"
	until [ -e "$drbd_dir/$node/reply.$n" ]; do
		kill -0 "${drbd_pid[$node]}" 2>/dev/null || die "$node has ended: $(tail -n 20 "$drbd_dir/$node/drbd.console")"
		[ "$SECONDS" -lt "$end" ] || die "$node does not answer to '$2': $(tail -n 5 "$drbd_dir/$node/drbd.log" "$drbd_dir/$node/drbd.console")"
		sleep 0.1
	done
	drbd_output=$(cat "$drbd_dir/$node/output.$n")
	return "$(cat "$drbd_dir/$node/reply.$n")"
}

# drbd_do NODE COMMAND: runs the command in the guest; the command must succeed.
drbd_do() { drbd_try "$@" || die "$1: '$2' failed: $drbd_output"; }

drbd_has_state() { # NODE WORD STATE: of both disks (dstate), or of the connection (cstate)
	drbd_do "$1" "drbdadm $2 r0" && [ "$drbd_output" = "$3" ]
}

drbd_wait_state() {
	mirror_until 600 drbd_has_state "$@" || die "$1: $2 is $drbd_output instead of $3"
}

drbd_wait_equal() {
	drbd_wait_state "$1" dstate UpToDate/UpToDate
}

drbd_journal() { echo "$drbd_dir/$1/journal"; }

# drbd_write NODE: starts to write records, from the number after the last acknowledged one.
drbd_write() { # NODE
	drbd_do "$1" "write $(drbd_journal "$1")"
}

drbd_acknowledged() { echo $(($(stat -c %s "$(drbd_journal "$1")" 2>/dev/null || echo 0) / 16)); }
drbd_has() { [ "$(drbd_acknowledged "$1")" -ge "$2" ]; }

# drbd_wait_records NODE COUNT: waits for COUNT more records.
drbd_wait_records() { # NODE COUNT
	local wanted=$(($(drbd_acknowledged "$1") + $2))
	mirror_until 600 drbd_has "$1" "$wanted" || die "$1 acknowledges nothing: $(cat "$drbd_dir/$1/writer.log")"
}

# drbd_judge WHAT: sets drbd_missing to the number of missing records in the output of mirror_check.
drbd_judge() {
	drbd_missing=$(sed -n 's/.* \([0-9]*\) missing$/\1/p' <<<"$drbd_output")
	[ "$drbd_missing" ] || die "$1 cannot be checked: $drbd_output"
	say "$1: ${drbd_output#*: }"
}

# drbd_look_at_disk NODE JOURNAL: checks the disk of a guest without power. The check uses a copy of
# the disk, and repairs the copy's ext4 first.
drbd_look_at_disk() { # NODE JOURNAL
	local copy=$drbd_dir/copy result=0
	cp --sparse=always "$drbd_dir/$1/disks/disk" "$copy"
	e2fsck -fy "$copy" >"$drbd_dir/e2fsck.log" 2>&1 || result=$?
	[ $result -lt 4 ] || die "the file system of $1 is broken: $(cat "$drbd_dir/e2fsck.log")"
	debugfs -R "dump /records $drbd_dir/records" "$copy" >"$drbd_dir/debugfs.log" 2>&1
	[ -s "$drbd_dir/records" ] || die "$1's disk has no records: $(cat "$drbd_dir/debugfs.log")"
	drbd_output=$("$vm_programs_dir/tests/vm/mirror/mirror_check" "$drbd_dir/records" "$2" 0) || :
	drbd_judge "the disk of $1, which lost its power"
	rm "$copy" "$drbd_dir/records"
}

drbd_look_in_guest() { # NODE WHAT [JOURNAL]
	cp "${3:-$(drbd_journal "$1")}" "$drbd_dir/$1/journal.check"
	drbd_try "$1" "'$vm_programs_dir/tests/vm/mirror/mirror_check' /data/records '$drbd_dir/$1/journal.check' 0" || :
	drbd_judge "$2"
}

# drbd_expect_equal PRIMARY: when no process uses the device any more, the contents of both disks
# must be equal.
drbd_expect_equal() { # PRIMARY
	local size
	drbd_do "$1" 'umount /data'
	drbd_wait_equal "$1"
	drbd_do "$1" 'cat /sys/block/drbd0/size'
	size=$((drbd_output * 512))
	cmp -n "$size" "$drbd_dir/a/disks/disk" "$drbd_dir/b/disks/disk" || die "the disks differ after they are UpToDate"
	drbd_do "$1" 'mount /dev/drbd0 /data'
}

drbd_resynced() { # NODE: KiB
	drbd_do "$1" last_resync
	drbd_kib=$drbd_output
}

# drbd_promote NODE: makes the node the primary after the former primary has failed. The order is
# repeated, because DRBD refuses it as long as the former primary counts as alive.
drbd_promote() { # NODE
	mirror_until 600 drbd_try "$1" 'drbdadm primary r0' || die "$1 does not become the primary: $drbd_output"
	drbd_do "$1" 'mount /dev/drbd0 /data'
}

drbd_returns() { # NODE: the commands of its service
	drbd_boot "$1"
	drbd_do "$1" 'drbdadm up r0'
}

drbd_setup() {
	local node
	drbd_dir=$vm_out/drbd
	rm -rf "$drbd_dir"
	mkdir -p "$drbd_dir"
	choose_forwards
	drbd_pair_ports="$vm_forward $vm_forward2"
	vm_forward='' vm_forward2=''
	for node in a b; do
		drbd_boot "$node"
	done
	for node in a b; do
		drbd_do "$node" 'drbdadm -- --force create-md r0 && drbdadm up r0'
	done
	drbd_wait_state a cstate Connected
	# Both disks are empty, so they are equal.
	drbd_do a 'drbdadm -- --clear-bitmap new-current-uuid r0'
	drbd_wait_equal a
	drbd_do a 'drbdadm primary r0 && mkfs.ext4 -q -b 4096 /dev/drbd0 && mount /dev/drbd0 /data'
	drbd_do a 'dd if=/dev/zero of=/data/records bs=4160 count=3000 conv=fsync 2>&1'
}

# drbd_write_until_busy NODE: writes until a random moment in the three seconds after that.
drbd_write_until_busy() { # NODE
	drbd_write "$1"
	drbd_wait_records "$1" 20
	sleep "$((RANDOM % 3)).$((RANDOM % 10))$((RANDOM % 10))"
}
