# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# A second kernel, the newer one of Debian 12: its rxe has Flush and Atomic Write, but it has no siw. The functions are
# in a separate file, so that a change of this file does not rebuild the first kernel.

# vm_fetch_new_kernel IMAGE: puts vmlinuz, the modules and the release's name into
# $vm_cache/kernel-new.
vm_fetch_new_kernel() {
	local image=$1 tmp=$vm_cache/new deb
	say "fetching the kernel ${image#linux-image-}"
	rm -rf "$tmp"
	mkdir -p "$tmp/debs" "$tmp/root"
	(cd "$tmp/debs" && apt-get -q download "$image" 2>&1) | grep -v '^[WN]:' >&2
	for deb in "$tmp"/debs/*.deb; do
		dpkg -x "$deb" "$tmp/root"
	done
	rm -rf "$tmp/debs"
	# The kernel is compressed with zstd, which is fast enough, so the kernel is not
	# decompressed here.
	mv "$tmp/root/boot/vmlinuz-${image#linux-image-}" "$tmp/vmlinux"
	depmod -b "$tmp/root" "${image#linux-image-}"
}

vm_build_new_kernel() {
	local image stamp
	image=$(apt-cache depends linux-image-6.12-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-6\.12\..*\)/\1/p' | head -n 1)
	[ "$image" ] || die "apt knows no kernel 6.12 (linux-image-6.12-amd64 of Debian 12's security updates)"
	stamp="$image $(sha256sum <"$vm_dir/kernel_new.sh")"
	vm_release=${image#linux-image-}
	if [ "$(cat "$vm_cache/kernel-new/stamp" 2>/dev/null)" != "$stamp" ]; then
		mkdir -p "$vm_cache"
		vm_fetch_new_kernel "$image"
		rm -rf "$vm_cache/kernel-new"
		echo "$stamp" >"$vm_cache/new/stamp"
		mv "$vm_cache/new" "$vm_cache/kernel-new"
	fi
}

# vm_on_new_kernel WORD...: runs the words with the second kernel.
vm_on_new_kernel() {
	local vm_release vm_kernel=kernel-new vm_initramfs=initramfs-new modules=()
	# QEMU 7.2 emulates cmpxchg16b wrongly: the instruction changes the flags.
	local vm_cpu=max,cx16=off
	vm_locked vm_build_new_kernel
	for name in "${vm_modules[@]}"; do
		[ "$name" = siw ] || modules+=("$name")
	done
	local vm_modules=("${modules[@]}")
	vm_locked vm_build_initramfs
	"$@"
}
