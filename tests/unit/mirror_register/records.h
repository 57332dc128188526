/* SPDX-License-Identifier: BSD-3-Clause */
/* records.h -- records of sets, for tests of the register. */
#ifndef MIRROR_REGISTER_RECORDS_H
#define MIRROR_REGISTER_RECORDS_H

#include "mirror/core/types.h"

/* Make the record of a set of this name: members a and b are in-sync, and there is no primary. */
void record_init(struct mirror_record *record, const char *set);
/* Change the record as the next swap of the epoch would, with a new nonce. */
void record_next(struct mirror_record *record);
/* Make this slot the primary of a new epoch. */
void record_promote(struct mirror_record *record, uint8_t slot);

#endif
