# SPDX-License-Identifier: BSD-3-Clause
# Checks that the guest has all programs and modules, and connects siw to itself.
# shellcheck shell=bash
set -e
. "$VM_TREE/tests/vm/guest/lib.sh"
siw_up
rdma link show
ibv_devices
# This test of siw uses no program of this project. On a busy machine rping's two ends sometimes
# wait for each other for ever.
siw_speaks() {
	timeout 20 rping -s -a 10.9.0.1 -p $((7174 + $1)) -C 3 &
	sleep 1
	timeout 20 rping -c -a 10.9.0.1 -p $((7174 + $1)) -C 3 -V && wait $!
}
siw_speaks 0 || siw_speaks 1 || siw_speaks 2 || fail "siw does not speak to itself"
nvdimm_up
disk_up
mount | grep -E 'dax|ext4'
