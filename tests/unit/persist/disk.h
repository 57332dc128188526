/* SPDX-License-Identifier: BSD-3-Clause */
/* disk.h -- small file systems on loop devices, in a mount namespace that ends with the test. */
#ifndef PERSIST_DISK_H
#define PERSIST_DISK_H

#include <stddef.h>

/*
 * Enter a new mount namespace, in a new directory below the current one. If the system forbids
 * that, the program prints the reason and exits with 77.
 */
void disk_begin(void);
/*
 * Call this before disk_begin(). If the kernel lacks the file system, or /usr/sbin lacks the
 * program `maker`, the test program prints that and exits with 77.
 */
void disk_need(const char *fs, const char *maker);
/* Mount a folder at a second place until the test ends. */
void disk_bind(const char *what, const char *where);
/* Unmount all file systems, and remove all files. */
void disk_end(void);
void disk_mount_tmpfs(const char *dir, size_t size);
/* Make a sparse image with a file system of type `fs`, and mount it at dir. */
void disk_mount_image(const char *fs, const char *image, size_t size, const char *dir);
/* Like disk_mount_image(), with mount options, which must include "loop". */
void disk_mount_image_with(const char *fs, const char *image, size_t size, const char *dir,
			   const char *options);
/*
 * Mount an overlay of DIR/lower, DIR/upper and DIR/work, which are made if they do not exist. Skips
 * the test if the kernel has no overlays.
 */
void disk_mount_overlay(const char *dir, const char *where);
/* Like disk_mount_overlay(), with one more mount option. Also skips the test if the option is not
 * supported. */
void disk_mount_overlay_with(const char *dir, const char *where, const char *option);
/* Make a file, with all its blocks allocated. */
void disk_make_file(const char *name, size_t size);
/* Freeze the file system at dir: writes to it wait until disk_thaw(), or for 30 s. */
void disk_freeze(const char *dir);
/* Unfreeze the file system. Does nothing if none is frozen. */
void disk_thaw(void);

#endif
