/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_disk.h -- an ext4 on a loop device of its own, which counts what is written to it.
 *
 * Its image is in a tmpfs, so no write waits for a real disk. The counter has everything: data,
 * inodes and the journal.
 */
#ifndef SYSTEM_LOOP_DISK_H
#define SYSTEM_LOOP_DISK_H

#include <stdint.h>

#define LOOP_DISK_BLOCK 4096u
/* Most bytes that may reach the disk for each flushed block. */
#define LOOP_DISK_LIMIT (12u << 10)

struct loop_disk {
	char folder[256]; /* what belongs to the disk; empty: not mounted */
	char top[256];    /* where it is mounted */
	char counters[96];
};

/* After bad_disk_need(). Makes `folder`; `top` is there. Size in MiB. */
void loop_disk_mount(struct loop_disk *disk, const char *folder, const char *top, unsigned size);
void loop_disk_unmount(struct loop_disk *disk); /* harmless when it is not mounted */

/*
 * Write all of a file anew as it is, in pieces of 1 MiB, and to the disk; it gets that size, which
 * is whole pieces. Where no process has loaded from a mapping of it, the page cache then has it in
 * the largest folios of the file system: a store through a mapping makes all of one dirty.
 */
void loop_disk_rewrite(const char *path, uint64_t size);

/* Bytes written to the disk so far, after all that is dirty. */
uint64_t loop_disk_settle(const struct loop_disk *disk);
/* Bytes written to the disk since `before`, for each of so many flushed blocks; prints them under
 * that name. */
uint64_t loop_disk_report(const struct loop_disk *disk, const char *what, uint64_t before,
			  unsigned blocks);

#endif
