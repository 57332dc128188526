/* SPDX-License-Identifier: BSD-3-Clause */
/* disk.h -- small file systems on loop devices, in a mount namespace that ends with the test. */
#ifndef PERSIST_DISK_H
#define PERSIST_DISK_H

#include <stddef.h>

/*
 * Enter a new mount namespace, in a new directory below the current one. If the system does not
 * allow that, prints the reason and exits with 77.
 */
void disk_begin(void);
/*
 * To be called before disk_begin(). If the kernel lacks the file system, or /usr/sbin lacks the
 * program, prints that and exits with 77.
 */
void disk_need(const char *fs, const char *maker);
/* Mount a folder at a second place until the test ends. */
void disk_bind(const char *what, const char *where);
/* Unmount all file systems, and remove all files. */
void disk_end(void);
void disk_mount_tmpfs(const char *dir, size_t size);
/* A sparse image with that file system, mounted at dir. */
void disk_mount_image(const char *fs, const char *image, size_t size, const char *dir);
/* The same with mount options, of which "loop" must be one. */
void disk_mount_image_with(const char *fs, const char *image, size_t size, const char *dir,
			   const char *options);
/*
 * An overlay of DIR/lower, DIR/upper and DIR/work, which are made if they do not exist. Skips the
 * test if the kernel lacks the file system.
 */
void disk_mount_overlay(const char *dir, const char *where);
/* The same with one more mount option. Skips the test also if the option is not supported. */
void disk_mount_overlay_with(const char *dir, const char *where, const char *option);
/* A file with all its blocks allocated. */
void disk_make_file(const char *name, size_t size);
/* Make writes to the file system at dir wait until the thaw, or for 30 s. */
void disk_freeze(const char *dir);
/* Harmless if no file system is frozen. */
void disk_thaw(void);

#endif
