/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h -- parses NAME=HOST[:PORT]:PATH, the address and path of a member's copy; pure except
 * for place_is_here(). */
#ifndef RPMIRROR_PLACE_H
#define RPMIRROR_PLACE_H

#include <stdbool.h>

#include "mirror/core/types.h"

#define PLACE_PORT 7650

/* Parses "a=10.0.0.1:/pm/orders" or "a=[fe80::1]:7650:/pm/orders". Returns false with a static
 * text in *why. Does not change member->id. */
bool place_parse(const char *text, struct mirror_member *member, const char **why);
/* Returns true if host is an address of this machine. */
bool place_is_here(const char *host);

#endif
