# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# VM_ARGS=CHECK,DAX,DISK,SERVE,HOW: whether to check the records acknowledged before the power cut; the number of these
# records on each medium; whether to serve again until the next cut (yes, no, or broken: without write-back); and the
# clients: outside the guest or, with rings-calls and rings-batch, in this guest.
. "$VM_TREE/tests/vm/guest/lib.sh"
IFS=, read -r check dax disk serve how <<<"$VM_ARGS"
programs=$VM_BUILD/tests/vm/cut
address=10.0.2.15
[[ $how != rings-* ]] || address=127.0.0.1
export RPMA_PROVIDER=softrnic

# look NAME FILE ACKNOWLEDGED: checks a file, and prints whether its acknowledged records were kept
# or lost.
look() {
	"$programs/cut_check" "$2" "$3"
	local result=$?
	# Status 2: the file has no records to check, which a missing write-back does not explain.
	[ $result -lt 2 ] || fail "$2 cannot be checked"
	echo "$1 $([ $result = 0 ] && echo kept || echo lost)"
}

# serve_file FILE PORT LOG: starts a server of the file.
serve_file() {
	rm -f "$1"
	fallocate -l 32M "$1" || fail "no room for $1"
	sync
	[ "$serve" != broken ] || export LD_PRELOAD=$programs/libcut_no_msync.so
	SOFTRNIC_LOG=info "$programs/cut_server" $address "$2" "$1" >"$VM_OUT/$3" 2>&1 &
	unset LD_PRELOAD
}

# record_here NAME PORT: starts a recorder in the guest. Its journal is outside the guest; a write
# to the journal returns only when it is complete outside.
record_here() {
	"$VM_BUILD/tests/system/crash/system_recorder" "$2" 0 "${how#rings-}" >>"$VM_OUT/$1.journal" 2>"$VM_OUT/$1.recorder" &
	wait_line "$VM_OUT/cut.$1" "receives through shared memory" 60 || fail "the client of $1 has no rings"
}

nvdimm_up
disk_up
if [ "$check" = yes ]; then
	look dax /pmem/file "$dax"
	look disk /disk/file "$disk"
fi
[ "$serve" != no ] || exit 0
user_net_up
serve_file /pmem/file 7000 cut.dax
serve_file /disk/file 7001 cut.disk
wait_line "$VM_OUT/cut.dax" listening 20 || fail "no server on DAX"
wait_line "$VM_OUT/cut.disk" listening 20 || fail "no server on the disk"
grep -q "durability dax" "$VM_OUT/cut.dax" || fail "the NVDIMM's file is not of class dax"
grep -q "durability file" "$VM_OUT/cut.disk" || fail "the disk's file is not of class file"
[ "$serve" != broken ] || grep -q "without write-back" "$VM_OUT/cut.disk" || fail "it writes back"
if [ $address = 127.0.0.1 ]; then
	record_here dax 7000
	record_here disk 7001
fi
echo ready >"$VM_OUT/cut.ready"
wait
