/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_disk.h -- a disk that really fails: an ext4 on a loop device, whose image is in a small
 * tmpfs. The test removes blocks of the image, and fills the space that this frees. The kernel can
 * then no longer write these blocks, and reports the failure of the write-back (ENOSPC).
 *
 * A block on a btrfs becomes unreadable (EIO) if its checksum no longer matches. It becomes
 * readable again when the whole block is written.
 *
 * To find out which bytes are durable, the test mounts a copy of the image. The copy lacks all
 * bytes that are only in the page cache, like the disk after a power cut.
 */
#ifndef SYSTEM_BAD_DISK_H
#define SYSTEM_BAD_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BAD_DISK_BYTES (10u << 20)
#define BAD_DISK_SUMS  (32u << 20) /* size of a disk with checksums */
#define BAD_DISK_BLOCK 4096u

struct bad_disk {
	char folder[256]; /* folder of the disk's image */
	char top[256];    /* folder where the disk is mounted */
};

/*
 * Call this first. It needs root, a mount namespace and loop devices; without them the test program
 * is skipped.
 */
void bad_disk_need(void);
/* Make `folder`, and mount the disk at `top`, which must exist. */
void bad_disk_mount(struct bad_disk *disk, const char *folder, const char *top);
/* Like bad_disk_mount(), but mount a btrfs, for bad_disk_spoil(). Returns false if the kernel does
 * not support btrfs. */
bool bad_disk_mount_sums(struct bad_disk *disk, const char *folder, const char *top);
void bad_disk_unmount(struct bad_disk *disk); /* harmless if the disk is not mounted */

/*
 * Make this block of the file unwritable; all other blocks stay writable. The caller must write
 * this block alone, because a loop device reports a larger request as written if it could write the
 * first part.
 */
void bad_disk_break_block(const struct bad_disk *disk, const char *path, uint64_t offset);
/* Like bad_disk_break_block(), for `blocks` blocks of the file. */
void bad_disk_break_blocks(const struct bad_disk *disk, const char *path, uint64_t offset,
			   unsigned blocks);
/* Make all blocks unwritable, even the blocks of the file system's journal. */
void bad_disk_break(const struct bad_disk *disk);
void bad_disk_repair(const struct bad_disk *disk);

/* On a btrfs: make the block of the file that begins with these bytes unreadable. No other block
 * must begin with these bytes, and no process must have the file open. */
void bad_disk_spoil(const struct bad_disk *disk, const char *path, const void *bytes, size_t len);

/* Returns a folder with the present content of the medium, valid until bad_disk_look_away(). */
const char *bad_disk_look(const struct bad_disk *disk);
void bad_disk_look_away(const struct bad_disk *disk);
/* Read bytes of this file from the medium. */
void bad_disk_read(const struct bad_disk *disk, const char *name, uint64_t offset, void *bytes,
		   size_t len);

#endif
