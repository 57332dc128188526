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

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() {
	printf 'vm: %s\n' "$*" >&2
	exit 1
}
# shellcheck source=tests/vm/build.sh
. "$vm_dir/build.sh"
# shellcheck source=tests/vm/kernel.sh
. "$vm_dir/kernel.sh"
# shellcheck source=tests/vm/initramfs.sh
. "$vm_dir/initramfs.sh"
# shellcheck source=tests/vm/boot.sh
. "$vm_dir/boot.sh"
trap vm_kill EXIT

vm_kernel_packages
case ${1:-help} in
build) vm_build ;;
*) vm_build; vm_job "$1" 600 "${2:-}"; cat "$vm_out/$1.log" ;;
esac
