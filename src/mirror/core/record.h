/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h -- encodes the set's record as bytes, for messages and files; pure.
 *
 * Little-endian. Magic "RPMRECRD" 8, format 4 (of the configuration), length of the whole record
 * 4, the fields in the order of struct mirror_record (texts as length 2 and characters; members by
 * a mask of the slots in use; the in-sync sets of the history after all other fields, unless all
 * are unknown), CRC32C of all bytes before it 4. A record has exactly one form: two records are
 * equal if and only if their bytes are equal.
 */
#ifndef MIRROR_CORE_RECORD_H
#define MIRROR_CORE_RECORD_H

#include <stddef.h>

#include "mirror/core/types.h"

#define RECORD_BYTES 16384 /* size of a buffer into which each record fits */

/* Check that the record's fields are consistent: texts end, names differ, sizes and counts are
 * within their limits, primary and insync are members. Returns NULL or a text about the defect. */
const char *record_check(const struct mirror_record *rec);

/* Returns the length, or 0 if the record does not fit or record_check() finds a defect. */
size_t record_encode(const struct mirror_record *rec, void *buf, size_t room);
/* Decode a record. Returns 0; -EBADMSG: no record, a damaged record, or record_check() finds a
 * defect; -EPROTONOSUPPORT: another format. *rec is written only on success, with free slots all
 * zero. */
int record_decode(struct mirror_record *rec, const void *buf, size_t len);

bool record_is_equal(const struct mirror_record *a, const struct mirror_record *b);

#endif
