/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ext.h -- the extension messages (opcodes 0xC and 0xD, doc/wire.md s6): their kinds, the table of
 * kinds, and their headers. Each message that two softrnic peers exchange beyond RFC 5040 and RFC
 * 7306 has a kind in this list. Its opcode only distinguishes requests from responses.
 */
#ifndef PROTO_EXT_H
#define PROTO_EXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"
#include "verbs_ext/values.h"

/*
 * The values are those on the wire. Each value is also a bit number in the set of kinds that a
 * HELLO states, so each value is below 64.
 */
enum ext_kind {
	EXT_HELLO = 1,
	EXT_HEARTBEAT = 2,
	EXT_FLUSH = 3,
	EXT_FLUSH_ALL = 4,
	EXT_VERIFY = 5,
	EXT_QUERY = 6,
	EXT_ATOMIC_WRITE = 7,
	EXT_LINK = 8,
	EXT_ORIGIN = 9,
	EXT_LEAVE = 10,
	EXT_ACK = 11,
};
#define EXT_KINDS     12
#define EXT_BIT(kind) (1ull << (kind))

/*
 * Every extension message begins with this word: 8 bits for the kind, and 24 bits whose meaning
 * depends on the kind.
 */
#define EXT_WORD_LEN 4
#define EXT_ARG_MAX  0xffffffu
struct ext_word {
	uint8_t kind;
	uint32_t arg; /* 24 bits */
};

/*
 * One row for each kind. `request` and `response` are the lengths of whole messages after the DDP
 * header. A message of a control kind (queue DDP_QN_CONTROL) takes no credit and is not for the
 * user. Such a message can be longer than the length in its row; bytes after the known fields are
 * ignored. Messages of the other kinds are executed in turn, and have exactly the length in their
 * row.
 */
struct ext_row {
	const char *name; /* NULL: the kind does not exist */
	bool control;
	uint16_t request, response; /* 0: the kind has no such message */
	uint16_t result;            /* length of the data after a successful response */
};
#define EXT_MAX 1024 /* limit of an extension message after the DDP header */

extern const struct ext_row ext_rows[EXT_KINDS];

/* Returns NULL for an unknown kind. */
static inline const struct ext_row *ext_row(uint8_t kind)
{
	return kind < EXT_KINDS && ext_rows[kind].name ? &ext_rows[kind] : NULL;
}

/* Read the word at the start of a message. The message must have at least EXT_WORD_LEN bytes. */
static inline struct ext_word ext_word_of(const uint8_t *bytes)
{
	return (struct ext_word){
		.kind = bytes[0],
		.arg = (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3],
	};
}

/* FLUSH, VERIFY and QUERY name a range of memory at the target. `arg` contains the flags
 * EXT_FLUSH_... below. */
#define EXT_RANGE_LEN 24
struct ext_range {
	struct ext_word word;
	uint32_t stag;
	uint64_t to;
	uint64_t len;
};
/* FLUSH_ALL has flags and no range: it flushes everything that this stream placed before the
 * FLUSH_ALL. */
#define EXT_ALL_LEN EXT_WORD_LEN

/* Flags of FLUSH, FLUSH_ALL and VERIFY. A VERIFY's `arg` also contains the digest algorithm. */
#define EXT_FLUSH_PERSIST   0x1u
#define EXT_FLUSH_VISIBLE   0x2u
#define EXT_FLUSH_STRICT    0x4u                   /* refuse memory that cannot persist */
#define EXT_VERIFY_ALG(alg) ((uint32_t)(alg) << 8) /* bits 8 to 15 */

static inline uint32_t ext_verify_alg(const struct ext_range *req)
{
	return req->word.arg >> 8 & 0xff;
}

/* Is this combination of flags valid for a FLUSH or FLUSH_ALL? Visible, persistent or both must be
 * set. The flag strict is valid only together with persistent. */
static inline bool ext_flush_is_valid(uint32_t flags)
{
	bool persist = flags & EXT_FLUSH_PERSIST;

	return (persist || flags & EXT_FLUSH_VISIBLE) && (persist || !(flags & EXT_FLUSH_STRICT)) &&
	       !(flags & ~(EXT_FLUSH_PERSIST | EXT_FLUSH_VISIBLE | EXT_FLUSH_STRICT));
}

/* Are the flags and the length valid for a VERIFY or QUERY? */
bool ext_verify_is_valid(const struct ext_range *req);
bool ext_query_is_valid(const struct ext_range *req);

/* ATOMIC_WRITE: writes 8 bytes, which have the same order in the message as in memory. */
#define EXT_ATOMIC_WRITE_LEN 24
struct ext_atomic_write {
	struct ext_word word;
	uint32_t stag;
	uint64_t to;
	uint8_t bytes[8];
};

/*
 * The response to a FLUSH, FLUSH_ALL, VERIFY, QUERY, ATOMIC_WRITE or ORIGIN. `arg` is the status.
 */
#define EXT_ANSWER_LEN 8
enum ext_status {
	EXT_OK,
	EXT_FAILED,   /* the write-back failed */
	EXT_VOLATILE, /* the request is strict, and the memory cannot persist */
	EXT_GONE,     /* the range is gone or past the end of its file */
};
struct ext_answer {
	struct ext_word word;
	uint32_t detail; /* Linux errno at the target; for a QUERY: enum vext_durability */
};
static inline bool ext_is_durability(uint32_t value)
{
	return value >= VEXT_DURABILITY_VOLATILE && value <= VEXT_DURABILITY_DAX;
}

/* A struct vext_digest of this length follows the answer to a successful VERIFY. */
#define EXT_DIGEST_LEN 48

/* ORIGIN is a message between the devices (ext_origin.h). Its response is a struct ext_answer. */
#define EXT_ORIGIN_LEN 48 /* length of an ORIGIN without ranges */
/* LEAVE is sent by an end that closes its direction of the stream before the peer has closed the
 * other direction. */
#define EXT_LEAVE_LEN EXT_WORD_LEN

/* ACK is a message between the devices. It states how many of the peer's messages the sender has
 * placed or delivered in order, without a gap. Whole Writes and messages of queue 0 count. */
#define EXT_ACK_LEN 12
struct ext_ack {
	/* `arg` is 0; or 1 + the code of the receiver's time until a retry, if the message after
	 * `count` is a Send that waits for a receive */
	struct ext_word word;
	uint64_t count;
};

/* HEARTBEAT is a message between the devices: the request is a ping, and the response is a pong. */
#define EXT_HEARTBEAT_LEN 16
struct ext_heartbeat {
	struct ext_word word; /* `arg` of this word is 0 */
	/* in a ping: the sender ends the connection after a silence of this length; 0: no limit
	 * stated */
	uint32_t limit_ms;
	/* a pong returns the token of the ping that it answers; 0 means that there was no ping */
	uint64_t token;
};

/* LINK is a message between the devices: one step of moving the stream to another link. The token
 * is a socket's name or a nonce; it is zero in SWITCH and STOP. */
#define EXT_LINK_TOKEN 16
#define EXT_LINK_LEN   (EXT_WORD_LEN + EXT_LINK_TOKEN)
enum ext_link_step {
	EXT_LINK_MEET = 1, /* the responder sends the name of a socket on its host */
	/*
	 * the responder returns the initiator's nonce, which has arrived at the responder's socket
	 */
	EXT_LINK_MET = 2,
	/* the initiator returns the responder's nonce, which has arrived over that socket */
	EXT_LINK_PROOF = 3,
	EXT_LINK_SWITCH = 4, /* all later bytes of this direction use the other link */
	EXT_LINK_STOP = 5,   /* the stream stays on its present link */
};
struct ext_link {
	struct ext_word word; /* `arg` is the step */
	uint8_t token[EXT_LINK_TOKEN];
};

/*
 * ext_<x>_encode(buf, size, msg) returns the length written or -ENOSPC; ext_<x>_decode(buf, len,
 * msg) returns the length read or -EBADMSG. _put and _get do the same in the middle of a message.
 * Each header has a fixed length.
 */
#define EXT_HEADERS(X)                                                                             \
	X(word, ext_word, EXT_WORD_LEN)                                                            \
	X(range, ext_range, EXT_RANGE_LEN)                                                         \
	X(atomic_write, ext_atomic_write, EXT_ATOMIC_WRITE_LEN)                                    \
	X(answer, ext_answer, EXT_ANSWER_LEN)                                                      \
	X(digest, vext_digest, EXT_DIGEST_LEN)                                                     \
	X(heartbeat, ext_heartbeat, EXT_HEARTBEAT_LEN)                                             \
	X(link, ext_link, EXT_LINK_LEN)                                                            \
	X(ack, ext_ack, EXT_ACK_LEN)
#define X(name, type, length)                                                                      \
	void ext_##name##_put(struct wcursor *c, const struct type *msg);                          \
	void ext_##name##_get(struct rcursor *c, struct type *msg);                                \
	int ext_##name##_encode(void *buf, size_t size, const struct type *msg);                   \
	int ext_##name##_decode(const void *buf, size_t len, struct type *msg);
EXT_HEADERS(X)
#undef X

#endif
