/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_disk.h -- an ext4 on a loop device, which counts the bytes that are written to it.
 *
 * Its image is in a tmpfs, so no write waits for a real disk. The counter includes data, inodes and
 * the journal.
 */
#ifndef SYSTEM_LOOP_DISK_H
#define SYSTEM_LOOP_DISK_H

#include <stdint.h>

#define LOOP_DISK_BLOCK 4096u
/* For each flushed block, the disk is allowed to write at most this many bytes. */
#define LOOP_DISK_LIMIT (12u << 10)

struct loop_disk {
	char folder[256]; /* folder of the disk's image; empty: the disk is not mounted */
	char top[256];    /* folder where the disk is mounted */
	char counters[96];
};

/* Make `folder`, and mount a new file system of `size` MiB at `top`, which must exist. Call
 * bad_disk_need() before. */
void loop_disk_mount(struct loop_disk *disk, const char *folder, const char *top, unsigned size);
void loop_disk_unmount(struct loop_disk *disk); /* harmless if the disk is not mounted */

/*
 * Rewrite a whole file with its present content, in pieces of 1 MiB, and sync it. The file gets
 * this size, which must be a multiple of 1 MiB. If no process has read the file through a mapping,
 * the page cache then holds it in the file system's largest folios, and a store through a mapping
 * makes a whole folio dirty.
 */
void loop_disk_rewrite(const char *path, uint64_t size);

/* Write back all dirty pages. Returns how many bytes have been written to the disk so far. */
uint64_t loop_disk_settle(const struct loop_disk *disk);
/*
 * Returns how many bytes were written to the disk since `before`, divided by the number of flushed
 * blocks, and prints this number with the name `what`.
 */
uint64_t loop_disk_report(const struct loop_disk *disk, const char *what, uint64_t before,
			  unsigned blocks);

#endif
