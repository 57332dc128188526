/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/wire/frame.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"

#define LABEL_SEAL "rpmem seal     1"
_Static_assert(sizeof(LABEL_SEAL) - 1 == MAC_LABEL, "length");

void wire_seal_begin(struct wire_seal *seal, const struct wire_key *key)
{
	seal->on = true;
	seal->number = 0;
	seal->key = *key;
}

/* Compute the MAC over the header and the body, which are adjacent. */
static void frame_mac(const struct wire_seal *seal, const uint8_t *bytes, size_t len,
		      uint8_t mac[WIRE_MAC])
{
	uint8_t number[8];
	struct wcursor c = wcursor_init(number, sizeof(number));
	const struct mac_part parts[] = {{number, sizeof(number)}, {bytes, len}};

	wcursor_le(&c, seal->number, 8);
	mac_make(seal->key.bytes, LABEL_SEAL, parts, 2, mac);
}

size_t wire_frame_encode(struct wire_seal *seal, enum wire_type type, const uint8_t *body,
			 size_t len, uint8_t *buf)
{
	struct wcursor c = wcursor_init(buf, WIRE_FRAME_MAX);
	uint8_t mac[WIRE_MAC];

	wcursor_le(&c, WIRE_MAGIC, 4);
	wcursor_u8(&c, WIRE_VERSION);
	wcursor_u8(&c, (uint8_t)type);
	wcursor_le(&c, 0, 2);
	wcursor_le(&c, len, 4);
	wcursor_bytes(&c, body, len);
	if (seal->on) {
		frame_mac(seal, buf, wcursor_len(&c), mac);
		wcursor_bytes(&c, mac, sizeof(mac));
		seal->number++;
	}
	return wcursor_len(&c);
}

/*
 * Check the first bytes as soon as they come, so that an end with another protocol is refused
 * without a wait.
 */
static int frame_check_magic(const uint8_t *buf, size_t len)
{
	static const uint8_t magic[4] = {'R', 'P', 'M', 'M'};

	return memcmp(buf, magic, len < 4 ? len : 4) ? -EPROTO : 0;
}

int wire_frame_decode(struct wire_seal *seal, const uint8_t *buf, size_t len,
		      struct wire_frame *frame)
{
	struct rcursor c = rcursor_init(buf, len);
	size_t body_len, seal_len = seal->on ? WIRE_MAC : 0;
	uint8_t version, mac[WIRE_MAC];

	if (len && frame_check_magic(buf, len))
		return -EPROTO;
	if (len < WIRE_HEADER)
		return 0;
	rcursor_bytes(&c, 4);
	version = rcursor_u8(&c);
	frame->type = rcursor_u8(&c);
	rcursor_bytes(&c, 2);
	body_len = rcursor_le(&c, 4);
	if (version != WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (body_len > WIRE_BODY_MAX)
		return -EMSGSIZE;
	if (rcursor_left(&c) < body_len + seal_len)
		return 0;
	frame->body = rcursor_bytes(&c, body_len);
	frame->len = body_len;
	if (seal->on) {
		frame_mac(seal, buf, WIRE_HEADER + body_len, mac);
		if (!mac_is_equal(rcursor_bytes(&c, WIRE_MAC), mac))
			return -EBADMSG;
		seal->number++;
	}
	return (int)(WIRE_HEADER + body_len + seal_len);
}
