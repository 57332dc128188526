/* SPDX-License-Identifier: BSD-3-Clause */
/* member_size.c -- the growth of a copy: first its files grow, then the size in its metadata. */
#include <inttypes.h>

#include "mirror/core/killpoint.h"
#include "mirror/core/member_impl.h"

void member_reserve(struct member *m, uint64_t size, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;

	if (super.room < size)
		super.room = size;
	member_done(v, member_set_super(m, &super));
}

void member_unreserve(struct member *m, struct member_verdict *v)
{
	struct meta_super super = m->meta->super;

	super.room = super.size;
	member_done(v, member_set_super(m, &super));
}

static bool member_is_connected(const struct member *m)
{
	return m->lanes || m->bulks;
}

bool member_may_grow(const struct member *m, uint64_t size)
{
	const struct meta_super *super = &m->meta->super;

	return super->room >= size && !super->holder.pid && !member_is_connected(m);
}

static void member_take(struct member *m, uint64_t size, struct member_verdict *v)
{
	int rc;

	killpoint(KILLPOINT_grow_take_before);
	rc = meta_set_size(m->meta, size);
	killpoint(KILLPOINT_grow_take_after);
	member_done(v, rc);
}

void member_grow(struct member *m, uint64_t size, struct member_verdict *v)
{
	const struct meta_super *super = &m->meta->super;

	if (size <= super->size)
		member_yes(v);
	else if (super->room < size)
		member_no(v, MEMBER_OTHER_SIZE,
			  "the files of the copy have room for %" PRIu64 " bytes, not for %" PRIu64,
			  super->room > super->size ? super->room : super->size, size);
	else if (member_is_connected(m))
		member_no(v, MEMBER_IS_HELD, "a primary is connected to the copy");
	else if (member_is_free(m, v))
		member_take(m, size, v);
}
