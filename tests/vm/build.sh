# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The parts of the guest: Debian's kernel, siw built for this kernel, and an initramfs of this
# machine's own programs. All parts are kept in $vm_cache, and made again only if their source
# changed.

vm_packages=(qemu-system-x86 busybox-static ndctl cpio bc xz-utils bzip2 gcc make
	iproute2 rdma-core rdmacm-utils ibverbs-providers ibverbs-utils perftest librpma0
	tshark tcpdump e2fsprogs kmod python3-minimal etcd-server libcurl4 libjansson4)

# vm_apt: calls apt-get, which waits while another apt-get runs.
vm_apt() { DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@" >&2; }

vm_setup() {
	local missing=() p
	for p in "${vm_packages[@]}"; do
		dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" = 0 ] || die "the guest needs packages that only root can install: ${missing[*]}"
	say "installing: ${missing[*]}"
	vm_apt -q update && vm_apt -q -y install --no-install-recommends "${missing[@]}" ||
		die "these packages cannot be installed, so there is no guest (is this Debian 12, and online?): ${missing[*]}"
}

# vm_locked COMMAND...: runs the command under a lock, because two builds of one cache would disturb
# each other.
vm_locked() {
	local lock
	mkdir -p "$vm_cache"
	exec {lock}>"$vm_cache/lock"
	flock "$lock"
	"$@"
	exec {lock}>&-
}

vm_build_guest() {
	vm_build_kernel
	vm_build_initramfs
}

vm_build() {
	vm_setup
	vm_locked vm_build_guest
}
