# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Debian's kernel, and siw built for it; kept until either changes.

vm_kernel_image() {
	{ apt-cache depends linux-image-amd64 2>/dev/null || :; } |
		sed -n 's/^ *Depends: \(linux-image-6\.1\..*\)/\1/p' | head -n 1
}

# One version for all of them: siw must be the source of the very kernel that loads it.
vm_kernel_packages() {
	local image version
	image=$(vm_kernel_image)
	if [ ! "$image" ] && [ "$(id -u)" = 0 ]; then
		vm_apt -q update || :
		image=$(vm_kernel_image)
	fi
	[ "$image" ] || die "apt knows no kernel 6.1 (linux-image-amd64 of Debian 12): is this Debian 12, and apt-get update done?"
	version=$(apt-cache show "$image" | sed -n 's/^Version: //p' | head -n 1)
	vm_release=${image#linux-image-}
	vm_debs=("$image=$version" "linux-headers-$vm_release=$version" "linux-kbuild-6.1=$version"
		"linux-headers-${vm_release%-*}-common=$version" "linux-source-6.1=$version")
}

# The stream lies somewhere in the image; xz ignores what follows it.
vm_decompress() {
	local at
	at=$(LC_ALL=C grep -abo -m 1 -P '\xFD7zXZ\x00' "$1" | head -n 1 | cut -d: -f1)
	[ "$at" ] || return 1
	tail -c +$((at + 1)) "$1" | xz -dc 2>/dev/null || :
}

# Unpacked, never installed: this machine keeps the kernel it has.
vm_fetch_kernel() {
	local tmp=$vm_cache/new deb
	say "fetching the kernel $vm_release"
	rm -rf "$tmp"
	mkdir -p "$tmp/debs" "$tmp/root"
	(cd "$tmp/debs" && apt-get -q download "${vm_debs[@]}") >"$tmp/apt.log" 2>&1 ||
		die "the kernel's packages cannot be fetched (after a change there: apt-get update): $(grep '^E:' "$tmp/apt.log" | head -n 1)"
	for deb in "$tmp"/debs/*.deb; do
		dpkg -x "$deb" "$tmp/root"
	done
	tar -xf "$tmp/root/usr/src/linux-source-6.1.tar.xz" -C "$tmp" --strip-components=1 \
		linux-source-6.1/drivers/infiniband/sw/siw
	rm -rf "$tmp/debs" "$tmp/root/usr/src/linux-source-6.1.tar.xz"
	# Without decompressing itself the kernel is up four seconds earlier.
	vm_decompress "$tmp/root/boot/vmlinuz-$vm_release" >"$tmp/vmlinux" ||
		die "the kernel is not compressed by xz any more"
}

# Its compile-time switches become parameters, so that one build does for every test.
vm_siw_parameters() {
	local dir=$1 name
	sed -i -E 's/^extern const bool /extern bool /' "$dir/siw.h"
	sed -i -E 's/^const bool /bool /' "$dir/siw_main.c"
	for name in mpa_crc_required mpa_crc_strict peer_to_peer try_gso; do
		echo "module_param($name, bool, 0644);" >>"$dir/siw_main.c"
	done
	echo "module_param(mpa_version, byte, 0644);" >>"$dir/siw_main.c"
}

vm_build_siw() {
	local tmp=$vm_cache/new headers=$vm_cache/new/root/usr/src/linux-headers-$vm_release
	local siw=$tmp/drivers/infiniband/sw/siw
	say "building siw"
	echo "include $tmp/root/usr/src/linux-headers-${vm_release%-*}-common/Makefile" >"$headers/Makefile"
	vm_siw_parameters "$siw"
	nice make -s -C "$headers" M="$siw" CONFIG_RDMA_SIW=m modules >"$tmp/siw.log" 2>&1 ||
		die "siw does not build, see $tmp/siw.log"
	mkdir -p "$tmp/root/lib/modules/$vm_release/extra"
	cp "$siw/siw.ko" "$tmp/root/lib/modules/$vm_release/extra/"
	depmod -b "$tmp/root" "$vm_release"
}

vm_build_kernel() {
	vm_kernel_packages
	local stamp
	stamp="${vm_debs[*]} $(sha256sum <"$vm_dir/kernel.sh")"
	[ "$(cat "$vm_cache/kernel/stamp" 2>/dev/null)" != "$stamp" ] || return 0
	mkdir -p "$vm_cache"
	vm_fetch_kernel
	vm_build_siw
	rm -rf "$vm_cache/kernel" "$vm_cache/new/root/usr/src"
	echo "$stamp" >"$vm_cache/new/stamp"
	mv "$vm_cache/new" "$vm_cache/kernel"
}
