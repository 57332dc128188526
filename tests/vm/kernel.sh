# SPDX-License-Identifier: BSD-3-Clause
# Debian's kernel, and siw built for it; both are kept until either changes.
# shellcheck shell=bash

# vm_versions PACKAGE: prints the versions of the package that apt can fetch, the newest first.
vm_versions() { apt-cache madison "$1" 2>/dev/null | awk -F'|' '{ gsub(/ /, "", $2); print $2 }' | sort -urV; }

vm_has() { vm_versions "$1" | grep -qxF "$2"; }

# vm_take_release RELEASE VERSION: returns false if apt lacks one of the packages in this version.
# The signed image is published hours after the other packages, and differs from the unsigned image
# only in its signature.
vm_take_release() {
	local release=$1 version=$2 image
	vm_has "linux-headers-$release" "$version" || return 1
	for image in "linux-image-$release" "linux-image-$release-unsigned"; do
		vm_has "$image" "$version" || continue
		vm_release=$release
		vm_debs=("$image=$version" "linux-headers-$release=$version" "linux-kbuild-6.1=$version"
			"linux-headers-${release%-*}-common=$version" "linux-source-6.1=$version")
		return 0
	done
	return 1
}

# vm_choose_kernel: chooses the newest kernel 6.1 whose packages are all available in one version,
# because siw's source must be that of the kernel that loads siw. Debian replaces these packages one
# by one, so the tools for the newest image may be missing.
vm_choose_kernel() {
	local releases version release
	releases=$(apt-cache pkgnames linux-headers-6.1.0- 2>/dev/null |
		sed -n 's/^linux-headers-\(6\.1\.0-[0-9]*-amd64\)$/\1/p' | sort -rV)
	for version in $(vm_versions linux-kbuild-6.1); do
		vm_has linux-source-6.1 "$version" || continue
		for release in $releases; do
			! vm_take_release "$release" "$version" || return 0
		done
	done
	return 1
}

vm_update_packages() { [ "$(id -u)" != 0 ] || vm_apt -q update || :; }

vm_kernel_packages() {
	vm_choose_kernel || { vm_update_packages && vm_choose_kernel; } ||
		die "apt knows no kernel 6.1 whose image, headers, kbuild and source have one version: is this Debian 12, and apt-get update done?"
}

vm_download() { (cd "$1/debs" && apt-get -q download "${vm_debs[@]}") >"$1/apt.log" 2>&1; }

# The compressed stream begins at an unknown offset in the image, and xz ignores the bytes after the
# stream.
vm_decompress() {
	local at
	at=$(LC_ALL=C grep -abo -m 1 -P '\xFD7zXZ\x00' "$1" | head -n 1 | cut -d: -f1)
	[ "$at" ] || return 1
	tail -c +$((at + 1)) "$1" | xz -dc 2>/dev/null || :
}

# vm_fetch_kernel: unpacks the packages without installing them, so that this machine keeps its
# kernel.
vm_fetch_kernel() {
	local tmp=$vm_cache/new deb
	say "fetching the kernel $vm_release"
	rm -rf "$tmp"
	mkdir -p "$tmp/debs" "$tmp/root"
	vm_download "$tmp" ||
		die "the kernel's packages cannot be fetched (after a change there: apt-get update): $(grep '^E:' "$tmp/apt.log" | head -n 1)"
	for deb in "$tmp"/debs/*.deb; do
		dpkg -x "$deb" "$tmp/root"
	done
	tar -xf "$tmp/root/usr/src/linux-source-6.1.tar.xz" -C "$tmp" --strip-components=1 \
		linux-source-6.1/drivers/infiniband/sw/siw
	rm -rf "$tmp/debs" "$tmp/root/usr/src/linux-source-6.1.tar.xz"
	# A kernel that is not compressed boots four seconds faster.
	vm_decompress "$tmp/root/boot/vmlinuz-$vm_release" >"$tmp/vmlinux" ||
		die "the kernel is not compressed by xz any more"
}

# vm_siw_parameters: turns siw's compile-time switches into parameters, so that one build is enough
# for every test.
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

vm_kernel_stamp() { echo "${vm_debs[*]} $(sha256sum <"$vm_dir/kernel.sh")"; }

vm_build_kernel() {
	local stamp
	vm_kernel_packages
	stamp=$(vm_kernel_stamp)
	[ "$(cat "$vm_cache/kernel/stamp" 2>/dev/null)" != "$stamp" ] || return 0
	# apt's lists can be older than the archive, which deletes each replaced package.
	vm_update_packages
	vm_kernel_packages
	stamp=$(vm_kernel_stamp)
	mkdir -p "$vm_cache"
	vm_fetch_kernel
	vm_build_siw
	rm -rf "$vm_cache/kernel" "$vm_cache/new/root/usr/src"
	echo "$stamp" >"$vm_cache/new/stamp"
	mv "$vm_cache/new" "$vm_cache/kernel"
}
