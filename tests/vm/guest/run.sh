#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs the job inside the guest, and stores its output and result for the script outside.
cd /tmp || exit 1
modprobe -a crc32_generic crc32c_generic crc32c_intel
ip link set lo up
bash "$VM_TREE/tests/vm/guest/$VM_JOB.sh" >"$VM_OUT/$VM_JOB.log" 2>&1
result=$?
dmesg >"$VM_OUT/$VM_JOB.dmesg"
# Any warning of the kernel is a failure, except lines about a crashed program (traps).
if grep -v traps: "$VM_OUT/$VM_JOB.dmesg" | grep -qE 'BUG:|Oops|general protection|WARNING:|refcount_t'; then
	echo "the kernel complains, see $VM_JOB.dmesg" >>"$VM_OUT/$VM_JOB.log"
	result=99
fi
echo "$result" >"$VM_OUT/$VM_JOB.result"
