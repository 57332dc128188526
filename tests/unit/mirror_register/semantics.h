/* SPDX-License-Identifier: BSD-3-Clause */
/* semantics.h -- the promises of every register, for any store. */
#ifndef MIRROR_REGISTER_SEMANTICS_H
#define MIRROR_REGISTER_SEMANTICS_H

#include "mirror/register/register.h"

/* Create the first record of set "orders". */
void semantics_create(struct mirror_register *r, struct register_entry *now);
/* Check two handles of the set "orders". Its record may exist, and is gone afterwards. */
void semantics_check(struct mirror_register *r, struct mirror_register *other);

#endif
