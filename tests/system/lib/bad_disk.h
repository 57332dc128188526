/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_disk.h -- a disk that really fails: an ext4 on a loop device, whose image is in a small
 * tmpfs. Blocks of the image are removed together with their room, so that the kernel cannot write
 * them any more, and reports that at the write-back (ENOSPC).
 *
 * Unreadable blocks are blocks of a btrfs whose checksums do not match any more (EIO), until they
 * are written as a whole.
 *
 * Durable bytes are checked as after a power cut: in a copy of the image, mounted elsewhere, which
 * lacks everything that is only in the page cache.
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
	char folder[256]; /* folder of the disk's own files */
	char top[256];    /* the folder where the disk is mounted */
};

/*
 * Call this first. The caller needs root, mounts of its own and loop devices; otherwise the program
 * is skipped.
 */
void bad_disk_need(void);
/* Makes `folder`; `top` exists already. */
void bad_disk_mount(struct bad_disk *disk, const char *folder, const char *top);
/* Mount a btrfs instead, whose blocks can be spoiled. Returns false if the kernel does not
 * support btrfs. */
bool bad_disk_mount_sums(struct bad_disk *disk, const char *folder, const char *top);
void bad_disk_unmount(struct bad_disk *disk); /* harmless if the disk is not mounted */

/*
 * Make that block of the file unwritable; all other blocks stay writable. Write the block alone: a
 * loop device reports a request as written if it could write the beginning.
 */
void bad_disk_break_block(const struct bad_disk *disk, const char *path, uint64_t offset);
/* The same as bad_disk_break_block(), for `count` blocks of the file. */
void bad_disk_break_blocks(const struct bad_disk *disk, const char *path, uint64_t offset,
			   unsigned blocks);
/* No block can be written any more, not even those of the file system's journal. */
void bad_disk_break(const struct bad_disk *disk);
void bad_disk_repair(const struct bad_disk *disk);

/*
 * For a btrfs: make the block of the file that begins with these bytes unreadable. No other block
 * begins with them, and no process has the file open.
 */
void bad_disk_spoil(const struct bad_disk *disk, const char *path, const void *bytes, size_t len);

/* Returns a folder with the present content of the disk, valid until look_away. */
const char *bad_disk_look(const struct bad_disk *disk);
void bad_disk_look_away(const struct bad_disk *disk);
/* Read bytes of the file of that name from the disk. */
void bad_disk_read(const struct bad_disk *disk, const char *name, uint64_t offset, void *bytes,
		   size_t len);

#endif
