/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h -- the set's record as bytes: in messages, in files, everywhere but in texts; pure.
 *
 * Little-endian. Magic "RPMRECRD" 8, format 4 (of the configuration), length of all 4, the fields
 * in the order of struct mirror_record (texts as length 2 and characters; members by a mask of the
 * slots in use; the in-sync sets of the history after all of it, unless all are unknown), CRC32C of
 * all before it 4. One record has exactly one form: equal bytes, equal records.
 */
#ifndef MIRROR_CORE_RECORD_H
#define MIRROR_CORE_RECORD_H

#include <stddef.h>

#include "mirror/core/types.h"

#define RECORD_BYTES 16384 /* room that each record fits into */

/* Are the record's fields consistent? Texts end, names differ, sizes and counts are in their
 * limits, primary and insync are members. Returns NULL or the defect. */
const char *record_check(const struct mirror_record *rec);

/* Returns the length, or 0 if the record does not fit or record_check() finds a defect. */
size_t record_encode(const struct mirror_record *rec, void *buf, size_t room);
/* Returns 0; -EBADMSG: no record, a damaged record, or record_check() finds a defect;
 * -EPROTONOSUPPORT: another format. *rec is written on success only, with free slots all zero. */
int record_decode(struct mirror_record *rec, const void *buf, size_t len);

bool record_is_equal(const struct mirror_record *a, const struct mirror_record *b);

#endif
