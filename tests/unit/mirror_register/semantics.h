/* SPDX-License-Identifier: BSD-3-Clause */
/* semantics.h -- tests of what every register promises, whatever store it uses. */
#ifndef MIRROR_REGISTER_SEMANTICS_H
#define MIRROR_REGISTER_SEMANTICS_H

#include "mirror/register/register.h"

/* Create the first record of set "orders". */
void semantics_create(struct mirror_register *r, struct register_entry *now);
/* Test two handles of the set "orders". Its record may exist before, and does not exist
 * afterwards. */
void semantics_check(struct mirror_register *r, struct mirror_register *other);

#endif
