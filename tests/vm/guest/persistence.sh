# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The reported durability of a file on DAX, on a disk and on tmpfs must be right. The power cuts (cut.sh) test that data
# survive.
. "$VM_TREE/tests/vm/guest/lib.sh"
rpma=$VM_BUILD/tools/rpma
export RPMA_PROVIDER=softrnic

# expect_class FILE CLASS: checks the class of a file.
expect_class() {
	fallocate -l 1M "$1" || fail "no room for $1"
	"$rpma" info --json "$1" >info || fail "rpma info $1"
	cat info
	grep -q "\"durability\":\"$2\"" info || fail "$1 is not called $2"
}

# expect_served FILE CLASS: a server must announce the class, and its client must report it.
expect_served() {
	"$rpma" serve --json --port 7204 "$1" >serve 2>&1 &
	local pid=$!
	wait_line serve regions 20 || fail "rpma serve $1: $(cat serve)"
	cat serve
	grep -q "\"durability\":\"$2\"" serve || fail "the server calls $1 other than $2"
	"$rpma" put "$1.source" 127.0.0.1 >put 2>&1 || fail "rpma put: $(cat put)"
	cmp -n 65536 "$1.source" "$1" || fail "something else has come"
	kill -INT $pid
	wait $pid
}

nvdimm_up
disk_up
mkdir -p /tmp/volatile
for dir in /pmem /disk /tmp/volatile; do
	rm -f "$dir"/region*
	head -c 65536 /dev/urandom >"$dir/region.source"
done
expect_class /pmem/region dax
expect_class /disk/region file
expect_class /tmp/volatile/region volatile
expect_served /pmem/region dax
expect_served /disk/region file
"$rpma" serve --port 7204 /tmp/volatile/region >serve 2>&1 && fail "tmpfs is served as if it were durable"
cat serve
mkdir -p /plain
umount /pmem
mount -t ext4 -o dax=never /dev/pmem0 /plain || fail "no mount without DAX"
rm -f /plain/region
expect_class /plain/region file
