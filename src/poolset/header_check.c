/* SPDX-License-Identifier: BSD-3-Clause */
#include "poolset/header.h"

#include <errno.h>
#include <string.h>

/* The header to check, and the first header, with which it is compared. */
struct header_check_part {
	const struct header_set *set;
	unsigned index;
	struct header first, h;
	struct error *err;
};

static int header_check_bad(const struct header_check_part *p, int cause, const char *what)
{
	return error_set(p->err, ERROR_LOCAL, cause, "%s: %s", p->set->names[p->index], what);
}

static bool header_check_same(const uint8_t *a, const uint8_t *b)
{
	return !memcmp(a, b, HEADER_UUID);
}

static int header_check_kind(const struct header_check_part *p)
{
	const struct header *a = &p->first, *b = &p->h;

	if (memcmp(a->signature, b->signature, sizeof(a->signature)))
		return header_check_bad(p, EINVAL, "its signature is not that of the first part");
	if (a->major != b->major)
		return header_check_bad(p, EINVAL,
					"its major version is not that of the first part");
	if (a->compat != b->compat || a->incompat != b->incompat || a->ro_compat != b->ro_compat)
		return header_check_bad(p, EINVAL, "its features are not those of the first part");
	return 0;
}

static int header_check_pool(const struct header_check_part *p)
{
	const struct header *a = &p->first, *b = &p->h;

	if (!header_check_same(a->poolset_uuid, b->poolset_uuid))
		return header_check_bad(p, EINVAL, "it belongs to another pool set (poolset_uuid)");
	if (!header_check_same(a->prev_repl, b->prev_repl) ||
	    !header_check_same(a->next_repl, b->next_repl))
		return header_check_bad(
			p, EINVAL, "its neighbouring replicas are not those of the first part");
	if (memcmp(a->arch_flags, b->arch_flags, HEADER_ARCH))
		return header_check_bad(p, EINVAL,
					"its architecture is not that of the first part");
	return 0;
}

static int header_check_ring(struct header_check_part *p)
{
	unsigned count = p->set->count;
	struct header prev, next;

	header_decode(p->set->pages[p->index], &p->h);
	header_decode(p->set->pages[(p->index + count - 1) % count], &prev);
	header_decode(p->set->pages[(p->index + 1) % count], &next);
	if (header_check_same(p->h.prev_part, prev.uuid) &&
	    header_check_same(p->h.next_part, next.uuid))
		return 0;
	return header_check_bad(p, EINVAL, "it is not linked to its neighbouring parts");
}

static int header_check_part(struct header_check_part *p)
{
	const uint8_t *page = p->set->pages[p->index];
	int rc;

	if (header_is_zero(page))
		return header_check_bad(p, EINVAL,
					"there is no pool in it: its header is all zero");
	header_decode(page, &p->h);
	rc = header_check_kind(p);
	if (rc)
		return rc;
	if (!header_is_intact(page))
		return header_check_bad(p, EBADMSG, "its pool header is corrupt");
	if (!(p->h.incompat & HEADER_SINGLEHDR) != !p->set->is_single)
		return header_check_bad(p, EINVAL,
					p->set->is_single
						? "it is of a pool without SINGLEHDR, an option of "
						  "the pool set file"
						: "it is of a pool with SINGLEHDR, which is no "
						  "option of the pool set file");
	return header_check_pool(p);
}

int header_check(const struct header_set *set, struct error *err)
{
	struct header_check_part part = {.set = set, .err = err};
	int rc = 0;

	if (set->count)
		header_decode(set->pages[0], &part.first);
	for (; !rc && part.index < set->count; part.index++)
		rc = header_check_part(&part);
	/*
	 * Check the ring after all other fields, so that a corrupt UUID is reported for the part
	 * that has it, not for its neighbour.
	 */
	for (part.index = 0; !rc && part.index < set->count; part.index++)
		rc = header_check_ring(&part);
	return rc;
}
