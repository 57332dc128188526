/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_disk.h -- an ext4 on a loop device of its own, which counts what is written to it.
 *
 * Its image is in a tmpfs, so no write waits for a real disk. The counter includes data, inodes and
 * the journal.
 */
#ifndef SYSTEM_LOOP_DISK_H
#define SYSTEM_LOOP_DISK_H

#include <stdint.h>

#define LOOP_DISK_BLOCK 4096u
/* Most bytes that may reach the disk for each flushed block. */
#define LOOP_DISK_LIMIT (12u << 10)

struct loop_disk {
	char folder[256]; /* folder of the disk's own files; empty: not mounted */
	char top[256];    /* the folder where the disk is mounted */
	char counters[96];
};

/* Mount a new file system at `folder`, which the call makes; `top` exists already. Size in MiB.
 * To be called after bad_disk_need(). */
void loop_disk_mount(struct loop_disk *disk, const char *folder, const char *top, unsigned size);
void loop_disk_unmount(struct loop_disk *disk); /* harmless if the disk is not mounted */

/*
 * Write a whole file anew with its own content, in pieces of 1 MiB, and sync the file. The file
 * gets that size, which must be a multiple of a piece. If no process has loaded from a mapping of
 * the file, the page cache then has it in the file system's largest folios, and a store through a
 * mapping makes a whole folio dirty.
 */
void loop_disk_rewrite(const char *path, uint64_t size);

/* Write back all dirty pages, and return the bytes written to the disk so far. */
uint64_t loop_disk_settle(const struct loop_disk *disk);
/*
 * Bytes written to the disk since `before` for each of that many flushed blocks; prints the number
 * under that name.
 */
uint64_t loop_disk_report(const struct loop_disk *disk, const char *what, uint64_t before,
			  unsigned blocks);

#endif
