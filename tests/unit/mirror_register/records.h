/* SPDX-License-Identifier: BSD-3-Clause */
/* records.h -- records of sets, for tests of the register. */
#ifndef MIRROR_REGISTER_RECORDS_H
#define MIRROR_REGISTER_RECORDS_H

#include "mirror/core/types.h"

/* A set of that name with two members, a and b, both in-sync, without a primary. */
void record_init(struct mirror_record *record, const char *set);
/* Make the record of the next swap of the same epoch, with a nonce of its own. */
void record_next(struct mirror_record *record);
/* The slot becomes primary of a new epoch. */
void record_promote(struct mirror_record *record, uint8_t slot);

#endif
