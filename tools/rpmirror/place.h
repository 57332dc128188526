/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h -- NAME=HOST[:PORT]:PATH, the place of a member's copy; pure except for
 * place_is_here(). */
#ifndef RPMIRROR_PLACE_H
#define RPMIRROR_PLACE_H

#include <stdbool.h>

#include "mirror/core/types.h"

#define PLACE_PORT 7650

/* Parses "a=10.0.0.1:/pm/orders" or "a=[fe80::1]:7650:/pm/orders". False: *why is a static text.
 * Does not change id. */
bool place_parse(const char *text, struct mirror_member *member, const char **why);
/* Is this an address of this machine? */
bool place_is_here(const char *host);

#endif
