/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/proto/ext.h"

#include <errno.h>

#define ARG_BITS 24

/* clang-format off */
const struct ext_row ext_rows[EXT_KINDS] = {
	[EXT_HELLO] = {.name = "Hello", .control = true, .request = EXT_WORD_LEN},
	[EXT_HEARTBEAT] = {.name = "Heartbeat", .control = true, .request = EXT_HEARTBEAT_LEN,
			   .response = EXT_HEARTBEAT_LEN},
	[EXT_FLUSH] = {.name = "Flush", .request = EXT_RANGE_LEN, .response = EXT_ANSWER_LEN},
	[EXT_FLUSH_ALL] = {.name = "Flush of everything", .request = EXT_ALL_LEN,
			   .response = EXT_ANSWER_LEN},
	[EXT_VERIFY] = {.name = "Verify", .request = EXT_RANGE_LEN, .response = EXT_ANSWER_LEN,
			.result = EXT_DIGEST_LEN},
	[EXT_QUERY] = {.name = "Query", .request = EXT_RANGE_LEN, .response = EXT_ANSWER_LEN},
	[EXT_ATOMIC_WRITE] = {.name = "Atomic Write", .request = EXT_ATOMIC_WRITE_LEN,
			      .response = EXT_ANSWER_LEN},
	[EXT_LINK] = {.name = "Link", .control = true, .request = EXT_LINK_LEN},
	[EXT_ORIGIN] = {.name = "Origin", .control = true, .request = EXT_ORIGIN_LEN,
			.response = EXT_ANSWER_LEN},
	[EXT_LEAVE] = {.name = "Leave", .control = true, .request = EXT_LEAVE_LEN},
	[EXT_ACK] = {.name = "Ack", .control = true, .request = EXT_ACK_LEN},
};
/* clang-format on */

void ext_word_put(struct wcursor *c, const struct ext_word *msg)
{
	wcursor_be32(c, (uint32_t)msg->kind << ARG_BITS | (msg->arg & EXT_ARG_MAX));
}

void ext_word_get(struct rcursor *c, struct ext_word *msg)
{
	uint32_t word = rcursor_be32(c);

	msg->kind = (uint8_t)(word >> ARG_BITS);
	msg->arg = word & EXT_ARG_MAX;
}

void ext_range_put(struct wcursor *c, const struct ext_range *msg)
{
	ext_word_put(c, &msg->word);
	wcursor_be32(c, msg->stag);
	wcursor_be64(c, msg->to);
	wcursor_be64(c, msg->len);
}

void ext_range_get(struct rcursor *c, struct ext_range *msg)
{
	ext_word_get(c, &msg->word);
	msg->stag = rcursor_be32(c);
	msg->to = rcursor_be64(c);
	msg->len = rcursor_be64(c);
}

static void ext_get_bytes(struct rcursor *c, uint8_t *to, size_t n)
{
	const uint8_t *from = rcursor_bytes(c, n);

	if (from)
		memcpy(to, from, n);
	else
		memset(to, 0, n);
}

void ext_atomic_write_put(struct wcursor *c, const struct ext_atomic_write *msg)
{
	ext_word_put(c, &msg->word);
	wcursor_be32(c, msg->stag);
	wcursor_be64(c, msg->to);
	wcursor_bytes(c, msg->bytes, sizeof(msg->bytes));
}

void ext_atomic_write_get(struct rcursor *c, struct ext_atomic_write *msg)
{
	ext_word_get(c, &msg->word);
	msg->stag = rcursor_be32(c);
	msg->to = rcursor_be64(c);
	ext_get_bytes(c, msg->bytes, sizeof(msg->bytes));
}

void ext_answer_put(struct wcursor *c, const struct ext_answer *msg)
{
	ext_word_put(c, &msg->word);
	wcursor_be32(c, msg->detail);
}

void ext_answer_get(struct rcursor *c, struct ext_answer *msg)
{
	ext_word_get(c, &msg->word);
	msg->detail = rcursor_be32(c);
}

void ext_digest_put(struct wcursor *c, const struct vext_digest *msg)
{
	wcursor_be32(c, msg->source);
	wcursor_be32(c, msg->durability);
	wcursor_be32(c, msg->alg);
	wcursor_be32(c, msg->len);
	wcursor_bytes(c, msg->bytes, sizeof(msg->bytes));
}

void ext_digest_get(struct rcursor *c, struct vext_digest *msg)
{
	msg->source = rcursor_be32(c);
	msg->durability = rcursor_be32(c);
	msg->alg = rcursor_be32(c);
	msg->len = rcursor_be32(c);
	ext_get_bytes(c, msg->bytes, sizeof(msg->bytes));
}

void ext_heartbeat_put(struct wcursor *c, const struct ext_heartbeat *msg)
{
	ext_word_put(c, &msg->word);
	wcursor_be32(c, msg->limit_ms);
	wcursor_be64(c, msg->token);
}

void ext_heartbeat_get(struct rcursor *c, struct ext_heartbeat *msg)
{
	ext_word_get(c, &msg->word);
	msg->limit_ms = rcursor_be32(c);
	msg->token = rcursor_be64(c);
}

void ext_link_put(struct wcursor *c, const struct ext_link *msg)
{
	ext_word_put(c, &msg->word);
	wcursor_bytes(c, msg->token, sizeof(msg->token));
}

void ext_link_get(struct rcursor *c, struct ext_link *msg)
{
	ext_word_get(c, &msg->word);
	ext_get_bytes(c, msg->token, sizeof(msg->token));
}

void ext_ack_put(struct wcursor *c, const struct ext_ack *msg)
{
	ext_word_put(c, &msg->word);
	wcursor_be64(c, msg->count);
}

void ext_ack_get(struct rcursor *c, struct ext_ack *msg)
{
	ext_word_get(c, &msg->word);
	msg->count = rcursor_be64(c);
}

/* A VERIFY's answer has a length field of 32 bits, and an empty range has no digest. */
bool ext_verify_is_valid(const struct ext_range *req)
{
	uint32_t alg = ext_verify_alg(req), flags = req->word.arg & ~EXT_VERIFY_ALG(alg);

	return vext_digest_is_alg(alg) && ext_flush_is_valid(flags) && flags & EXT_FLUSH_PERSIST &&
	       req->len > 0 && req->len <= UINT32_MAX;
}

bool ext_query_is_valid(const struct ext_range *req)
{
	return req->word.arg == 0 && req->len > 0;
}

/* The cursor's length is a constant, so the compiler emits one check and not one for each field. */
#define X(name, type, length)                                                                      \
	__attribute__((flatten)) int ext_##name##_encode(void *buf, size_t size,                   \
							 const struct type *msg)                   \
	{                                                                                          \
		struct wcursor c = wcursor_init(buf, length);                                      \
                                                                                                   \
		if (size < (length))                                                               \
			return -ENOSPC;                                                            \
		ext_##name##_put(&c, msg);                                                         \
		return length;                                                                     \
	}                                                                                          \
                                                                                                   \
	__attribute__((flatten)) int ext_##name##_decode(const void *buf, size_t len,              \
							 struct type *msg)                         \
	{                                                                                          \
		struct rcursor c = rcursor_init(buf, length);                                      \
                                                                                                   \
		if (len < (length))                                                                \
			return -EBADMSG;                                                           \
		ext_##name##_get(&c, msg);                                                         \
		return length;                                                                     \
	}
EXT_HEADERS(X)
#undef X
