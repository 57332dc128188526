/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_record.h -- stores on the disk, beside a region's file, the state of the region's content
 * and the claims of its writers.
 *
 * The record of the file F is F.rpma in the same folder, 2656 bytes, little-endian:
 *
 *   0    8  magic "RPMAHOLD"
 *   8    4  version, 2
 *   12   4  state: 0 nothing is known; 1 a file that is being written, or whose writer failed;
 *           2 a whole file
 *   16   8  inode of F, and
 *   24   8  time at which F was made, in ns since 1970 (0: the file system does not report it).
 *           If one of them differs, the record belongs to a former file of this name: ignore it
 *   32   8  length of the file that was put, from the beginning of F (2^64-1: not known yet)
 *   40   8  modification time of the file that was put, in ns since 1970
 *   48   32 digest of the file that was put, BLAKE2b-256; zero unless the state is 2
 *   80   8  generation of the newest claim (claims.h), 0: there was none
 *   88   4  number of the claims that follow, at most 64, in the order of their generations
 *   92   40 for each claim: first byte, byte behind the last, generation, key, and the time of the
 *           claim, in ns since 1970. Zeros follow the last claim.
 *   2652 4  CRC32C of the bytes before it
 *
 * The record is replaced as a whole: the new record is written under another name, synced and
 * renamed, and its folder is synced. On a full disk the record is overwritten instead, because
 * clients can still write a region whose space is allocated. A crash in the middle then leaves a
 * damaged record. If the record is missing, damaged or of another version, the server treats the
 * content of F as unknown, and no claim holds.
 *
 * Functions return 0 or -errno. Thread-safe; only one thread at a time uses a struct
 * file_record_place.
 */
#ifndef REGIONS_FILE_RECORD_H
#define REGIONS_FILE_RECORD_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "regions/claims.h"
#include "regions/hello.h"

#define FILE_RECORD_SIZE (92 + CLAIMS_MAX * 40 + 4)

struct file_record {
	struct hello_content content;
	struct claims claims;
};

/* The path of a file's record, and the identity of the file. */
struct file_record_place {
	char path[PATH_MAX + 8];
	uint64_t inode, made_ns;
	mode_t mode; /* mode of the file, which the record gets as well */
};

/* fd is the open file. If path is a symbolic link, the record is beside the file that the link
 * leads to. */
int file_record_place_init(struct file_record_place *place, const char *path, int fd);
/*
 * Load the record. *record is zero if there is no record, or if it belongs to another file. size:
 * size of the region; a longer content is not valid. -EILSEQ: the record is damaged or of another
 * version; *record is zero then as well.
 */
int file_record_load(const struct file_record_place *place, uint64_t size,
		     struct file_record *record);
int file_record_store(const struct file_record_place *place, const struct file_record *record);

/* Encode the record into buf[FILE_RECORD_SIZE]. Returns the number of bytes. */
size_t file_record_encode(const struct file_record_place *place, const struct file_record *record,
			  uint8_t *buf);
int file_record_decode(const struct file_record_place *place, uint64_t size, const uint8_t *buf,
		       size_t len, struct file_record *record);

#endif
