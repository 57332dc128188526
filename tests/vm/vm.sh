#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The guest lab: ./dev vm WORD... (doc/vm.md).
set -euo pipefail
vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
vm_top=$(cd "$vm_dir/../.." && pwd)
vm_cache=${RPMA_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/rpma-vm}
vm_programs_dir=${RPMA_VM_BUILD:-$vm_top/build}
vm_out=${RPMA_VM_OUT:-$vm_top/build-vm}
vm_disks=$vm_out/disks
vm_kernel=kernel vm_initramfs=initramfs vm_cpu=max

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() {
	printf 'vm: %s\n' "$*" >&2
	exit 1
}
for part in build kernel kernel_new initramfs boot interop edges cut stop report mirror mirror_rounds mirror_both drbd drbd_rounds; do
	# shellcheck source=/dev/null
	. "$vm_dir/$part.sh"
done
# Some of Debian's programs are not in a normal user's path.
PATH=$PATH:/usr/sbin:/sbin
trap vm_end EXIT

pairs_short="soft-siw siw-soft-crc soft-debian-crc debian-soft"
pairs_all="soft-siw siw-soft soft-debian debian-soft soft-siw-crc siw-soft-crc soft-debian-crc debian-soft-crc soft-siw-p2p siw-soft-p2p"
pairs_clients="soft-siw siw-soft soft-siw-crc siw-soft-crc soft-siw-p2p siw-soft-p2p"

vm_word() {
	case $1 in
	build) ;;
	hello) vm_job hello 240 ;;
	persistence) vm_job persistence 180 ;;
	network) vm_job network 400 ;;
	stopped) vm_stop ;;
	device) vm_job device 1200 "${RPMA_VM_ARGS:-}" ;;
	verbs-speed) vm_job verbs-speed 3000 "${RPMA_VM_ARGS:-}" && "$vm_dir/speed.py" "$vm_out/verbs-speed.jsonl" ;;
	device-6.12) vm_on_new_kernel vm_job device 1200 "${RPMA_VM_ARGS:-}" ;;
	interop) vm_interop "$pairs_all" ;;
	clients) vm_clients "$pairs_clients" ;;
	interposer) vm_job interposer 200 ;;
	edges) vm_edges ;;
	interop-short) vm_interop "$pairs_short" ;;
	powercut) vm_cut "${RPMA_VM_CUTS:-15}" "${RPMA_VM_SEED:-}" ;;
	mirror) vm_mirror "${RPMA_VM_CUTS:-8}" "${RPMA_VM_SEED:-}" "${RPMA_VM_ARGS:-}" ;;
	drbd) vm_with_drbd vm_drbd "${RPMA_VM_SEED:-}" ;;
	powercut-short) vm_cut 2 "${RPMA_VM_SEED:-}" ;;
	*) die "unknown scenario '$1' (there are: hello interop interop-short clients interposer edges persistence powercut powercut-short mirror drbd network stopped device device-6.12 verbs-speed)" ;;
	esac
}

words=("$@")
case "${1:-}" in
'') die "which scenario? build, short, all, or some of: hello interop clients interposer edges persistence powercut mirror drbd network stopped device device-6.12 verbs-speed" ;;
short) words=(interop-short powercut-short) ;;
all) words=(hello interop clients interposer edges persistence powercut mirror drbd network stopped device device-6.12) ;;
esac
vm_build
mkdir -p "$vm_out"
for word in "${words[@]}"; do
	begin=$SECONDS
	say "$word"
	vm_word "$word"
	say "$word: passed in $((SECONDS - begin)) s"
done
