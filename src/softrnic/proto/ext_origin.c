/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/ext_origin.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/ext.h"

_Static_assert(EXT_ORIGIN_LEN + EXT_ORIGIN_RANGES * EXT_ORIGIN_RANGE_LEN <= EXT_MAX,
	       "as many ranges as a message has room for");

static const uint8_t origin_no_owner[EXT_ID_LEN];

int ext_origin_encode(void *buf, size_t size, const struct ext_origin *origin)
{
	struct wcursor c = wcursor_init(buf, size);
	struct ext_word word = {.kind = EXT_ORIGIN,
				.arg = (origin->asks ? EXT_ORIGIN_ASKS : 0) | origin->n << 8};

	ext_word_put(&c, &word);
	wcursor_be32(&c, origin->limit_ms);
	wcursor_be64(&c, origin->serial);
	wcursor_bytes(&c, origin->id, EXT_ID_LEN);
	wcursor_bytes(&c, origin->has_owner ? origin->owner : origin_no_owner, EXT_ID_LEN);
	for (unsigned i = 0; i < origin->n; i++) {
		wcursor_be64(&c, origin->ranges[i].first);
		wcursor_be64(&c, origin->ranges[i].last);
	}
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

static void origin_get_id(struct rcursor *c, uint8_t id[EXT_ID_LEN])
{
	const uint8_t *bytes = rcursor_bytes(c, EXT_ID_LEN);

	if (bytes)
		memcpy(id, bytes, EXT_ID_LEN);
}

/* Read the ranges, and check that they ascend and do not overlap. */
static bool origin_get_ranges(struct rcursor *c, struct ext_origin *origin)
{
	uint64_t after = 0;

	for (unsigned i = 0; i < origin->n; i++) {
		struct ext_range_of_serials *r = &origin->ranges[i];

		r->first = rcursor_be64(c);
		r->last = rcursor_be64(c);
		if (r->first <= after || r->last < r->first)
			return false;
		after = r->last;
	}
	return true;
}

static const char *origin_get(struct rcursor *c, uint32_t arg, struct ext_origin *origin)
{
	origin->asks = arg & EXT_ORIGIN_ASKS;
	origin->n = EXT_ORIGIN_COUNT(arg);
	origin->limit_ms = rcursor_be32(c);
	origin->serial = rcursor_be64(c);
	origin_get_id(c, origin->id);
	origin_get_id(c, origin->owner);
	origin->has_owner = memcmp(origin->owner, origin_no_owner, EXT_ID_LEN) != 0;
	if (c->bad || origin->n > rcursor_left(c) / EXT_ORIGIN_RANGE_LEN)
		return "it is too short";
	if (!origin->serial)
		return "it has no serial number";
	if (!origin->asks && (origin->n || origin->has_owner))
		return "it names connections, but does not ask to end them";
	return origin_get_ranges(c, origin) ? NULL : "a range is out of order";
}

int ext_origin_decode(const void *buf, size_t len, struct ext_origin *origin, const char **why)
{
	struct rcursor c = rcursor_init(buf, len);
	struct ext_word word;

	*origin = (struct ext_origin){.asks = false};
	ext_word_get(&c, &word);
	*why = word.kind == EXT_ORIGIN && !c.bad && len <= EXT_MAX
		       ? origin_get(&c, word.arg, origin)
		       : "it is not an Origin";
	return *why ? -EBADMSG : 0;
}

bool ext_origin_names(const struct ext_origin *origin, uint64_t serial)
{
	for (unsigned i = 0; i < origin->n; i++)
		if (serial >= origin->ranges[i].first && serial <= origin->ranges[i].last)
			return true;
	return false;
}
