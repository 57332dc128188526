# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Does the guest have everything? siw talks to itself.
set -e
. "$VM_TREE/tests/vm/guest/lib.sh"
siw_up
rdma link show
ibv_devices
rping -s -a 10.9.0.1 -p 7174 -C 3 &
sleep 1
rping -c -a 10.9.0.1 -p 7174 -C 3 -V
wait
nvdimm_up
disk_up
mount | grep -E 'dax|ext4'
