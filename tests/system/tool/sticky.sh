#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A disk that fails while a server uses it. The test needs root and loop devices, and is skipped
# otherwise.
self=$(realpath "$0")
# shellcheck source=tests/system/tool/lib.sh
. "$(dirname "$0")/lib.sh"

# Mounts an ext2 at ./fs, whose image is in the tmpfs ./disk, which is too small for it. A write to
# a block fails if the image has no data for the block and ./disk has no free bytes.
mount_promising_disk() {
	mkdir -p disk fs
	mount -t tmpfs -o size=4M tmpfs disk &&
		truncate -s 16M disk/image &&
		/usr/sbin/mkfs.ext2 -q -b 4096 -m 0 disk/image &&
		mount -o loop disk/image fs
}

# Removes the data blocks from the image, and keeps the file system's metadata, which are at its
# beginning.
take_the_room_away() {
	sync -f fs
	fallocate --punch-hole --offset 1M --length 15M disk/image
	dd if=/dev/zero of=disk/filler bs=4096 2>/dev/null || :
}

# The server's mappings keep the inner file system busy, and the inner file system keeps its image
# busy, so the server is killed first.
unmount_and_clean_up() {
	[ -z "$server" ] || kill -9 "$server" 2>/dev/null || :
	wait
	umount fs disk
	cleanup
}

generation_is() { [ "$(od -An -tu8 -j 80 -N 8 fs/region.rpma | tr -d ' ')" = "$1" ]; }

alone_test_a_failed_write_back_is_remembered_across_connections() {
	local rc=0
	mount_promising_disk || exit 77
	trap unmount_and_clean_up EXIT
	echo 'a secret of enough bytes' >secret
	chmod 600 secret
	dd if=/dev/zero of=fs/spacer bs=4096 count=256 status=none # the region's blocks lie behind 1M
	serve fs/region --create --size 1M --secret-file secret
	random_file data 1M
	expect_ok "$rpma" put -S secret --no-verify --offset 0 data "$where"
	mkfifo stream
	"$rpma" put -S secret --no-verify --offset 0 - "$where" <stream >out 2>err &
	started+=("$!")
	exec 6>stream
	head -c 4096 data >&6
	wait_until 20 generation_is 2 || fail "the record has no second claim" # the record needs room, too
	take_the_room_away
	tail -c +4097 data >&6
	exec 6>&-
	wait "${started[-1]}" || rc=$?
	[ "$rc" = 1 ] && grep -q 'write' err || fail "the put exits with $rc and says: $(cat err)"
	grep -q 'librpma: write-back of .* failed' serve.err || fail "the server does not say so"
	rm disk/filler
	expect 1 'write' "$rpma" put -S secret --no-verify --offset 0 data "$where"
	expect_ok "$rpma" info -S secret --openmetrics "$where"
	grep -qE '^rpma_serve_writeback_failures_total.* [1-9][0-9]*$' out || fail "no metric of the failure: $(cat out)"
	stop_server
	serve fs/region --secret-file secret
	expect_ok "$rpma" put -S secret data "$where"
	stop_server
}

test_a_failed_write_back_is_remembered_across_connections() {
	[ "$(id -u)" = 0 ] && [ -w /dev/loop-control ] || exit 77
	unshare -m true 2>/dev/null || exit 77
	unshare -m bash "$self" alone
}

if [ "$1" = alone ]; then
	alone_test_a_failed_write_back_is_remembered_across_connections
else
	"test_$1"
fi
