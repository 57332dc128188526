/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_record.h -- what a region holds, kept on the disk beside the region's file.
 *
 * The record of the file F is F.rpma in the same folder, 84 bytes, little-endian:
 *
 *   0   8  magic "RPMAHOLD"
 *   8   4  version, 1
 *   12  4  state: 0 nothing is known; 1 a file that is being written, or whose writer failed;
 *          2 a whole file
 *   16  8  inode of F, and
 *   24  8  when F was made, in ns since 1970 (0: the file system does not say): the record of a
 *          file that had that name before is worth nothing
 *   32  8  length of what was put there, from F's beginning on (2^64-1: not known yet)
 *   40  8  when that was modified last, in ns since 1970
 *   48  32 its digest, BLAKE2b-256; zero unless the state is 2
 *   80  4  CRC32C of the bytes before
 *
 * It is replaced as a whole: written under another name, synced, renamed, and its folder synced. No
 * record, and one that is damaged or of another version, say that nothing is known of F's bytes.
 *
 * Functions return 0 or -errno. Thread-safe, one thread a place.
 */
#ifndef REGIONS_FILE_RECORD_H
#define REGIONS_FILE_RECORD_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "regions/hello.h"

#define FILE_RECORD_SIZE 84

/* Where the record of a file is, and which file it is. */
struct file_record_place {
	char path[PATH_MAX + 8];
	uint64_t inode, made_ns;
	mode_t mode; /* of the file, hence of the record */
};

/* The file is open as fd. Beside what a symbolic link leads to. */
int file_record_place_init(struct file_record_place *place, const char *path, int fd);
/* RAW: there is none, or one of another file. size: of the region; no file is longer. -EILSEQ: it
 * is damaged or of another version, which is RAW as well. */
int file_record_load(const struct file_record_place *place, uint64_t size,
		     struct hello_content *content);
int file_record_store(const struct file_record_place *place, const struct hello_content *content);

/* Bytes written to buf[FILE_RECORD_SIZE]. */
size_t file_record_encode(const struct file_record_place *place,
			  const struct hello_content *content, uint8_t *buf);
int file_record_decode(const struct file_record_place *place, uint64_t size, const uint8_t *buf,
		       size_t len, struct hello_content *content);

#endif
