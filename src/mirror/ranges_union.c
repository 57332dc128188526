/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/ranges_union.h"

#include <stdlib.h>
#include <string.h>

#include "mirror/core/ranges.h"

static bool ranges_union_grow(struct ranges_union *u, uint32_t n)
{
	uint32_t room = u->room ? u->room : 64;
	struct mirror_range *v;

	while (room - u->count < n)
		room *= 2;
	if (room == u->room)
		return true;
	v = realloc(u->v, room * sizeof(*v));
	if (!v)
		return false;
	u->v = v;
	u->room = room;
	return true;
}

bool ranges_union_add(struct ranges_union *u, const struct mirror_range *v, uint32_t n)
{
	if (!n)
		return true;
	if (!ranges_union_grow(u, n))
		return false;
	memcpy(u->v + u->count, v, n * sizeof(*v));
	u->count = ranges_normalise(u->v, u->count + n);
	return true;
}

void ranges_union_clear(struct ranges_union *u)
{
	free(u->v);
	*u = (struct ranges_union){0};
}
