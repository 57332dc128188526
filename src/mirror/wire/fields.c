/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/wire/fields.h"

#include <string.h>

enum { FIELDS_VIEW_CLEAN = 1 << 0, FIELDS_VIEW_FORCED = 1 << 1 };

void fields_put_uuid(struct wcursor *c, const struct mirror_uuid *uuid)
{
	wcursor_bytes(c, uuid->bytes, sizeof(uuid->bytes));
}

void fields_put_view(struct wcursor *c, const struct mirror_view *view)
{
	epoch_put(c, view->epoch);
	wcursor_le(c, view->seq, 8);
	wcursor_u8(c, (uint8_t)view->phase);
	wcursor_u8(c, view->primary);
	wcursor_u8(c, (uint8_t)((view->clean ? FIELDS_VIEW_CLEAN : 0) |
				(view->forced ? FIELDS_VIEW_FORCED : 0)));
	wcursor_u8(c, view->insync);
}

void fields_put_text(struct wcursor *c, const char *text, size_t size)
{
	size_t len = strnlen(text, size - 1);

	wcursor_le(c, len, 2);
	wcursor_bytes(c, text, len);
}

void fields_put_padding(struct wcursor *c)
{
	memset(c->p, 0, (size_t)(c->end - c->p));
	c->p = c->end;
}

void fields_get_bytes(struct rcursor *c, void *dst, size_t len)
{
	const uint8_t *at = rcursor_bytes(c, len);

	if (at && len)
		memcpy(dst, at, len);
}

void fields_get_uuid(struct rcursor *c, struct mirror_uuid *uuid)
{
	fields_get_bytes(c, uuid->bytes, sizeof(uuid->bytes));
}

uint8_t fields_get_below(struct rcursor *c, unsigned end)
{
	uint8_t value = rcursor_u8(c);

	if (value < end)
		return value;
	c->bad = true;
	return 0;
}

uint8_t fields_get_slot(struct rcursor *c)
{
	uint8_t slot = rcursor_u8(c);

	if (slot >= MIRROR_MEMBERS_MAX && slot != MIRROR_NO_SLOT)
		c->bad = true;
	return slot;
}

uint8_t fields_get_flags(struct rcursor *c, uint8_t known)
{
	uint8_t flags = rcursor_u8(c);

	if (flags & ~known)
		c->bad = true;
	return flags & known;
}

void fields_get_view(struct rcursor *c, struct mirror_view *view)
{
	uint8_t flags;

	view->epoch = epoch_get(c);
	view->seq = rcursor_le(c, 8);
	view->phase = (enum mirror_phase)fields_get_below(c, MIRROR_PHASE_SERVING + 1);
	view->primary = fields_get_slot(c);
	flags = fields_get_flags(c, FIELDS_VIEW_CLEAN | FIELDS_VIEW_FORCED);
	view->clean = flags & FIELDS_VIEW_CLEAN;
	view->forced = flags & FIELDS_VIEW_FORCED;
	view->insync = rcursor_u8(c);
}

void fields_get_text(struct rcursor *c, char *text, size_t size)
{
	size_t len = rcursor_le(c, 2);
	const uint8_t *at = len < size ? rcursor_bytes(c, len) : NULL;

	text[0] = '\0';
	if (!at || memchr(at, '\0', len)) {
		c->bad = true;
		return;
	}
	memcpy(text, at, len);
	text[len] = '\0';
}

void fields_get_padding(struct rcursor *c)
{
	while (rcursor_left(c))
		if (rcursor_u8(c))
			c->bad = true;
}
