/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "poolset/impl.h"

int pool_check_attr(const struct poolset_pool *pool, const struct poolset_attr *attr,
		    struct error *err)
{
	bool wants_single, is_single = pool->parts.options & SETTEXT_SINGLEHDR;
	bool has_headers = !(pool->parts.options & SETTEXT_NOHDRS);
	const char *name = pool->parts.name;

	if (poolset_attr_is_zero(attr) != !has_headers)
		return error_set(
			err, ERROR_LOCAL, EINVAL,
			has_headers ? "%s: a pool with headers needs attributes (without "
				      "them the pool set file must have the option NOHDRS)"
				    : "%s has the option NOHDRS, so it cannot store attributes",
			name);
	wants_single = has_headers && (attr->incompat & HEADER_SINGLEHDR);
	if (has_headers && wants_single != is_single)
		return error_set(
			err, ERROR_LOCAL, EINVAL,
			is_single
				? "%s has the option SINGLEHDR, but the attributes (incompat 0x1) "
				  "do not state it"
				: "%s lacks the option SINGLEHDR, but the attributes (incompat "
				  "0x1) state it",
			name);
	return 0;
}

static void pool_fill_zero(uint8_t uuid[HEADER_UUID], const uint8_t with[HEADER_UUID])
{
	static const uint8_t zero[HEADER_UUID];

	if (!memcmp(uuid, zero, HEADER_UUID))
		memcpy(uuid, with, HEADER_UUID);
}

void pool_complete_attr(struct poolset_attr *attr)
{
	uint8_t fresh[HEADER_UUID];

	header_fresh_uuid(fresh);
	pool_fill_zero(attr->poolset_uuid, fresh);
	header_fresh_uuid(fresh);
	pool_fill_zero(attr->uuid, fresh);
	pool_fill_zero(attr->prev_uuid, attr->uuid);
	pool_fill_zero(attr->next_uuid, attr->uuid);
	header_arch_flags(fresh);
	pool_fill_zero(attr->user_flags, fresh);
}

void pool_apply_attr(struct poolset_pool *pool, const struct poolset_attr *attr)
{
	unsigned count = pool->parts.nheaders;

	for (unsigned i = 0; i < count; i++)
		header_set_attr(&pool->headers[i], attr);
	if (count)
		memcpy(pool->headers[0].uuid, attr->uuid, HEADER_UUID);
	/* Link the headers of the parts into a ring. */
	for (unsigned i = 0; i < count; i++) {
		struct header *h = &pool->headers[i];

		memcpy(h->prev_part, pool->headers[(i + count - 1) % count].uuid, HEADER_UUID);
		memcpy(h->next_part, pool->headers[(i + 1) % count].uuid, HEADER_UUID);
	}
}

int poolset_set_attr(struct poolset_pool *pool, const struct poolset_attr *attr, struct error *err)
{
	int rc = pool_check_attr(pool, attr, err);

	if (rc || !pool->parts.nheaders)
		return rc;
	pool_apply_attr(pool, attr);
	return pool_write_headers(pool, err);
}
