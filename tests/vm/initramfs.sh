# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The guest's initramfs: programs of this machine with their libraries, and the kernel's modules.

# The order is arbitrary, because modprobe also loads the modules that these modules need.
vm_modules=(siw rdma_rxe ib_uverbs rdma_ucm nfit nd_pmem ext4 crc32_generic crc32c_generic crc32c_intel
	9p 9pnet_virtio virtio_pci virtio_net virtio_blk veth dummy sch_netem)
vm_programs=(bash timeout fallocate env sleep cat cp mv rm mkdir ls ln stat sed grep awk head tail cut tr sort wc
	cmp dd od seq date id ps pidof sync truncate dirname basename mktemp tee chmod sha256sum sysctl
	mount umount mountpoint ip tc rdma tcpdump ndctl mkfs.ext4 e2fsck modprobe dmesg
	rping ibv_devices ibv_devinfo find ib_write_bw ib_read_bw ib_send_bw ib_write_lat ib_read_lat ib_send_lat)
# The list includes the dynamic linker itself, at the path where libraries in a separate linker
# namespace expect it.
vm_libraries=(/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 /usr/lib/x86_64-linux-gnu/libibverbs/lib{siw,rxe}-rdmav34.so
	/usr/lib/x86_64-linux-gnu/librpma.so.0 /lib/x86_64-linux-gnu/libgcc_s.so.1
	/usr/lib/x86_64-linux-gnu/lib{cmocka,curl,isal,jansson,pmem,sodium}.so.[0-9]*)

# vm_trees: folders of unpacked packages that are also copied into the guest.
vm_trees=()

vm_copy() {
	local file
	for file; do
		[ -e "$root$file" ] || cp -L --parents "$file" "$root"
	done
}

vm_copy_programs() {
	local root=$1 name file files=()
	for name in "${vm_programs[@]}"; do
		file=$(type -P "$name") || die "there is no $name for the guest"
		files+=("$(dirname "$(readlink -f "$(dirname "$file")")/x")/$name")
	done
	files+=("${vm_libraries[@]}")
	vm_copy "${files[@]}"
	for file in "${files[@]}"; do
		# A static program has no libraries, which ldd reports as an error.
		{ ldd "$file" 2>/dev/null || :; } | sed -nE 's/.* => (\/[^ ]+) .*/\1/p; s/^[[:space:]]+(\/[^ ]+) .*/\1/p'
	done | sort -u | while read -r file; do
		vm_copy "$file"
	done
}

vm_copy_modules() {
	local root=$1 base=$vm_cache/$vm_kernel/root file
	mkdir -p "$root/lib/modules/$vm_release"
	cp "$base/lib/modules/$vm_release"/modules.{order,builtin,builtin.modinfo} "$root/lib/modules/$vm_release"
	# -C /dev/null: the rules of ndctl for modprobe would exclude a module that is needed.
	modprobe -C /dev/null -d "$base" -S "$vm_release" -a --show-depends "${vm_modules[@]}" |
		awk '$1 == "insmod" { print $2 }' | sort -u | while read -r file; do
		mkdir -p "$root$(dirname "${file#"$base"}")"
		cp "$file" "$root${file#"$base"}"
	done
	depmod -b "$root" "$vm_release"
}

vm_build_initramfs() {
	local root=$vm_cache/initramfs stamp tree
	stamp="$(cat "$vm_cache/$vm_kernel/stamp" "${vm_trees[@]/%//stamp}") ${vm_modules[*]} $(cat "$vm_dir/initramfs.sh" "$vm_dir/guest/init" | sha256sum)"
	[ "$(cat "$vm_cache/$vm_initramfs.stamp" 2>/dev/null)" != "$stamp" ] || return 0
	say "packing the initramfs"
	rm -rf "$root" "$vm_cache/$vm_initramfs.stamp"
	mkdir -p "$root"/{proc,sys,dev,run,tmp,mnt,etc/libibverbs.d,root,var/run,usr/bin,usr/sbin,usr/lib/x86_64-linux-gnu}
	for dir in bin sbin lib lib64; do
		mkdir -p "$root/usr/$dir"
		ln -s "usr/$dir" "$root/$dir"
	done
	cp /bin/busybox "$root/bin/busybox"
	ln -s busybox "$root/bin/sh"
	vm_copy_programs "$root"
	vm_copy_modules "$root"
	for tree in "${vm_trees[@]}"; do
		cp -r "$tree/." "$root"
	done
	cp /etc/libibverbs.d/{siw,rxe}.driver "$root/etc/libibverbs.d/"
	mkdir -p "$root/etc/ndctl"
	echo "root:x:0:0:root:/root:/bin/bash" >"$root/etc/passwd"
	echo "root:x:0:" >"$root/etc/group"
	echo "127.0.0.1 localhost" >"$root/etc/hosts"
	install -m 755 "$vm_dir/guest/init" "$root/init"
	(cd "$root" && find . | cpio -o -H newc --quiet | gzip -1) >"$vm_cache/$vm_initramfs.gz"
	rm -rf "$root"
	echo "$stamp" >"$vm_cache/$vm_initramfs.stamp"
}
