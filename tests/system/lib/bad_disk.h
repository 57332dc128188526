/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_disk.h -- a disk that fails, in reality: an ext4 on a loop device, whose image is in a small
 * tmpfs. Blocks of the image are taken away with their room, so that the kernel cannot write them
 * any more, and says so at the write-back (ENOSPC).
 *
 * Blocks that cannot be read are those of a btrfs whose checksums do not fit any more (EIO), until
 * they are written as a whole.
 *
 * What is durable is looked at as after a power cut: in a copy of the image, mounted elsewhere,
 * which has nothing of what only the page cache has.
 */
#ifndef SYSTEM_BAD_DISK_H
#define SYSTEM_BAD_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BAD_DISK_BYTES (10u << 20)
#define BAD_DISK_SUMS  (32u << 20) /* of one with checksums */
#define BAD_DISK_BLOCK 4096u

struct bad_disk {
	char folder[256]; /* what belongs to the disk */
	char top[256];    /* where it is mounted */
};

/* First: root, mounts of its own, loop devices; else the program is skipped. */
void bad_disk_need(void);
/* Makes `folder`; `top` is there. */
void bad_disk_mount(struct bad_disk *disk, const char *folder, const char *top);
/* A btrfs instead, of which blocks can be spoiled. False: the kernel has none. */
bool bad_disk_mount_sums(struct bad_disk *disk, const char *folder, const char *top);
void bad_disk_unmount(struct bad_disk *disk); /* harmless when it is not mounted */

/* That block of the file cannot be written any more, all others can. Alone: a loop device calls a
 * request written of which it could write the beginning. */
void bad_disk_break_block(const struct bad_disk *disk, const char *path, uint64_t offset);
/* So many blocks of the file. */
void bad_disk_break_blocks(const struct bad_disk *disk, const char *path, uint64_t offset,
			   unsigned blocks);
/* None can, those of the file system's journal neither. */
void bad_disk_break(const struct bad_disk *disk);
void bad_disk_repair(const struct bad_disk *disk);

/* Of a btrfs: the block of the file that begins with these bytes, as no other block does, cannot be
 * read any more. Nobody has the file open. */
void bad_disk_spoil(const struct bad_disk *disk, const char *path, const void *bytes, size_t len);

/* The folder that has what the disk has at this moment, until look_away. */
const char *bad_disk_look(const struct bad_disk *disk);
void bad_disk_look_away(const struct bad_disk *disk);
/* Bytes of the file of that name as they are on the disk. */
void bad_disk_read(const struct bad_disk *disk, const char *name, uint64_t offset, void *bytes,
		   size_t len);

#endif
