/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/ext_hello.h"

#include <errno.h>
#include <string.h>

#include "softrnic/proto/ext.h"
#include "softrnic/proto/mpa.h"

#define ITEM_ALIGN 4u
/* bytes; a newer version may send further words, which this version ignores */
#define KINDS_WORD  8u
#define SCALAR_LEN  4u
#define ITEM_BIT(t) (1ull << (t))

struct hello_value {
	uint16_t type, len;
	const uint8_t *bytes;
};

static void hello_put_head(struct wcursor *c, enum ext_hello_item type, uint16_t len)
{
	wcursor_be16(c, (uint16_t)type);
	wcursor_be16(c, len);
}

int ext_hello_encode(void *buf, size_t size, const struct ext_hello *hello)
{
	struct wcursor c = wcursor_init(buf, size);
	struct ext_word word = {.kind = EXT_HELLO};

	ext_word_put(&c, &word);
	hello_put_head(&c, EXT_HELLO_VERSION, SCALAR_LEN);
	wcursor_be16(&c, hello->major);
	wcursor_be16(&c, hello->minor);
	hello_put_head(&c, EXT_HELLO_KINDS, KINDS_WORD);
	wcursor_be64(&c, hello->kinds);
	hello_put_head(&c, EXT_HELLO_LIMIT, SCALAR_LEN);
	wcursor_be32(&c, hello->limit_ms);
	hello_put_head(&c, EXT_HELLO_MAX_ULPDU, SCALAR_LEN);
	wcursor_be32(&c, hello->max_ulpdu);
	if (hello->has_instance) {
		hello_put_head(&c, EXT_HELLO_INSTANCE, EXT_ID_LEN);
		wcursor_bytes(&c, hello->instance, EXT_ID_LEN);
	}
	if (hello->rings) {
		hello_put_head(&c, EXT_HELLO_RINGS, SCALAR_LEN);
		wcursor_be32(&c, hello->rings);
	}
	if (hello->acks) {
		hello_put_head(&c, EXT_HELLO_ACKS, SCALAR_LEN);
		wcursor_be32(&c, hello->acks);
	}
	return c.bad ? -ENOSPC : (int)wcursor_len(&c);
}

/* Read the next item and skip its padding. */
static const char *hello_get_item(struct rcursor *c, struct hello_value *item)
{
	item->type = rcursor_be16(c);
	item->len = rcursor_be16(c);
	item->bytes = rcursor_bytes(c, item->len);
	rcursor_bytes(c, -(size_t)item->len % ITEM_ALIGN);
	return c->bad ? "an item runs past its end" : NULL;
}

static const char *hello_take_version(struct rcursor *v, struct ext_hello *hello)
{
	hello->major = rcursor_be16(v);
	hello->minor = rcursor_be16(v);
	return hello->major == EXT_HELLO_MAJOR ? NULL
					       : "it is of another version of the extensions";
}

/* If the peer's limit is above the largest ULPDU that this end sends, it has the same effect as
 * that ULPDU's length. */
static const char *hello_take_ulpdu(struct rcursor *v, struct ext_hello *hello)
{
	uint32_t most = rcursor_be32(v);

	hello->max_ulpdu = most < MPA_ULPDU_MAX ? most : MPA_ULPDU_MAX;
	return most < EXT_HELLO_ULPDU_MIN ? "the largest ULPDU it states is below the minimum"
					  : NULL;
}

static bool hello_is_long_enough(const struct hello_value *item)
{
	if (item->type == EXT_HELLO_KINDS)
		return item->len > 0 && item->len % KINDS_WORD == 0;
	return item->len == (item->type == EXT_HELLO_INSTANCE ? EXT_ID_LEN : SCALAR_LEN);
}

static const char *hello_take(const struct hello_value *item, struct ext_hello *hello)
{
	struct rcursor v = rcursor_init(item->bytes, item->len);

	if (!hello_is_long_enough(item))
		return "an item has the wrong length";
	switch ((enum ext_hello_item)item->type) {
	case EXT_HELLO_VERSION:
		return hello_take_version(&v, hello);
	case EXT_HELLO_KINDS:
		hello->kinds = rcursor_be64(&v);
		break;
	case EXT_HELLO_LIMIT:
		hello->limit_ms = rcursor_be32(&v);
		break;
	case EXT_HELLO_MAX_ULPDU:
		return hello_take_ulpdu(&v, hello);
	case EXT_HELLO_INSTANCE:
		hello->has_instance = true;
		memcpy(hello->instance, rcursor_bytes(&v, EXT_ID_LEN), EXT_ID_LEN);
		break;
	case EXT_HELLO_RINGS:
		hello->rings = rcursor_be32(&v);
		break;
	case EXT_HELLO_ACKS:
		hello->acks = rcursor_be32(&v);
		break;
	}
	return NULL;
}

static bool hello_is_known(uint16_t type)
{
	return (type >= EXT_HELLO_VERSION && type <= EXT_HELLO_INSTANCE) ||
	       type == EXT_HELLO_RINGS || type == EXT_HELLO_ACKS;
}

static const char *hello_get(struct rcursor *c, struct ext_hello *hello)
{
	struct hello_value item;
	const char *why = NULL;
	uint64_t seen = 0;

	while (rcursor_left(c) > 0 && !why) {
		why = hello_get_item(c, &item);
		if (why || !hello_is_known(item.type))
			continue;
		why = seen & ITEM_BIT(item.type) ? "an item is there twice"
						 : hello_take(&item, hello);
		seen |= ITEM_BIT(item.type);
	}
	if (!why && !(seen & ITEM_BIT(EXT_HELLO_VERSION)))
		why = "its version is missing";
	return why;
}

int ext_hello_decode(const void *buf, size_t len, struct ext_hello *hello, const char **why)
{
	struct rcursor c = rcursor_init(buf, len);
	struct ext_word word;

	*hello = (struct ext_hello){.max_ulpdu = MPA_ULPDU_MAX};
	ext_word_get(&c, &word);
	*why = word.kind == EXT_HELLO && !c.bad ? hello_get(&c, hello) : "it is not a HELLO";
	return *why ? -EBADMSG : 0;
}
