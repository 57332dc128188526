/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * message.h -- the codec of the messages between librpmem and rpmemd on the control stream.
 *
 * Pure. Little-endian. The stream is ssh's standard input and output, or a TCP connection whose
 * ends have proven to each other that they have a secret (proof.h). frame.h describes the frame
 * around a message. Section 13 of doc/wire.md specifies the protocol.
 *
 *   daemon                                   initiator
 *   GREETING  ────────────────────────────►
 *             ◄──────────────────────────── PROOF      with WIRE_GREETING_PROVE only; from
 *   PROVEN    ────────────────────────────►            here on frames are sealed
 *             ◄──────────────────────────── CREATE, OPEN, SET_ATTR, LANES, DEEP, CLOSE, REMOVE
 *   ANSWER    ────────────────────────────►            one to each request, in order
 *
 * x_encode() writes to buf[WIRE_BODY_MAX] and returns the length. x_decode() returns false unless
 * the bytes are exactly such a body. A text or name in a decoded message ends with a NUL.
 * x_encode() cuts a text that is too long for its field. A text that a peer sent is for people
 * only, and may contain any byte but NUL (text_make_printable()).
 */
#ifndef RPMEM_WIRE_MESSAGE_H
#define RPMEM_WIRE_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpmem/wire/status.h"

#define WIRE_BODY_MAX 16384
#define WIRE_NAME_MAX 4095 /* longest name of a pool set */
#define WIRE_TEXT_MAX 1023
#define WIRE_ADDR_MAX 63
#define WIRE_NONCE    32
#define WIRE_MAC      32
#define WIRE_KEY      32

enum wire_type {
	WIRE_GREETING = 1,
	WIRE_PROOF,
	WIRE_PROVEN,
	WIRE_CREATE,
	WIRE_OPEN,
	WIRE_SET_ATTR,
	WIRE_LANES,
	WIRE_DEEP,
	WIRE_CLOSE,
	WIRE_REMOVE,
	WIRE_ANSWER,
	WIRE_TYPE_END,
};

/* Returns the name, such as "CREATE", or "unknown". */
const char *wire_type_name(unsigned type);

#define WIRE_GREETING_PROVE 1u /* the initiator must send a PROOF before any other message */

/* The first message of the daemon. */
struct wire_greeting {
	uint32_t flags;
	/* errno of a failed start-up, whose reason is in the text; 0: the daemon is ready */
	uint32_t error;
	uint8_t nonce[WIRE_NONCE];
	char text[WIRE_TEXT_MAX + 1];
};

/* Proves that the initiator has the secret (proof.h). */
struct wire_proof {
	uint8_t nonce[WIRE_NONCE];
	uint8_t mac[WIRE_MAC];
};

/* Proves that the daemon has the secret. In a refusal: EACCES and zeros. */
struct wire_proven {
	uint32_t error;
	uint8_t mac[WIRE_MAC];
	char text[WIRE_TEXT_MAX + 1];
};

/* The attributes in a pool header, in the order of struct rpmem_pool_attr. */
struct wire_attr {
	char signature[8];
	uint32_t major, compat_features, incompat_features, ro_compat_features;
	uint8_t poolset_uuid[16], uuid[16], next_uuid[16], prev_uuid[16], user_flags[16];
};

/* The method that makes bytes durable. */
enum wire_method {
	WIRE_METHOD_ANY,       /* only in a request: the daemon chooses the method */
	WIRE_METHOD_NATIVE,    /* rpma_flush() as an operation that the target executes */
	WIRE_METHOD_APPLIANCE, /* rpma_flush() as a Read after the Writes */
	/* a message; the daemon makes the bytes durable and answers (lane.h) */
	WIRE_METHOD_GENERAL,
	WIRE_METHOD_END,
};

/* The body of CREATE and OPEN. */
struct wire_pool_request {
	uint64_t pool_size; /* number of bytes to use, from the beginning of the pool */
	uint32_t lanes;     /* requested number of lanes, at least 1 */
	uint32_t features;  /* 0, because no feature is defined; unknown bits are ignored */
	/* NATIVE: the initiator's device supports this method; ANY: the device does not support
	 * it */
	uint8_t method;
	bool has_attr; /* only in CREATE; false: a pool without headers */
	struct wire_attr attr;
	char name[WIRE_NAME_MAX + 1];
};

struct wire_set_attr {
	bool has_attr;
	struct wire_attr attr;
};

/* Lanes that the initiator is about to connect. The daemon opens a port only for these lanes. */
struct wire_lanes {
	uint32_t first, count;
};

/* A range of the pool that is already persistent, to be flushed out of the memory's own buffers. */
struct wire_deep {
	uint64_t offset, length;
};

#define WIRE_CLOSE_REMOVE 1u /* also remove the pool, which must be one that this session created */

struct wire_close {
	uint32_t flags;
};

#define WIRE_REMOVE_FORCE    1u /* means RPMEM_REMOVE_FORCE */
#define WIRE_REMOVE_POOL_SET 2u /* means RPMEM_REMOVE_POOL_SET */

struct wire_remove {
	uint32_t flags;
	char name[WIRE_NAME_MAX + 1];
};

/* A part of the successful answer to CREATE or OPEN. */
struct wire_pool_answer {
	uint32_t lanes;     /* granted lanes: 0 to lanes - 1 */
	uint32_t features;  /* features of the request that the daemon supports */
	uint8_t method;     /* enum wire_method, not ANY */
	uint8_t durability; /* enum rpma_durability: the weakest of the pool's parts */
	uint16_t port;      /* port for lane 0 */
	/* numeric address of the data path; "": unknown to the daemon */
	char addr[WIRE_ADDR_MAX + 1];
	/* key of the lanes, over ssh; zeros in a sealed stream, which derives this key (proof.h) */
	uint8_t lane_key[WIRE_KEY];
	bool has_headers;
	struct wire_attr attr; /* attributes in the first header; valid if has_headers */
};

/* The answer to LANES. */
struct wire_lanes_answer {
	uint16_t port;
};

struct wire_answer {
	uint8_t request; /* enum wire_type of the request */
	/* enum wire_status; the members after the text are present only with WIRE_OK */
	uint8_t status;
	uint32_t error; /* the daemon's errno, or 0 */
	/* The daemon's text: the reason of a failure, or a warning (volatile memory). */
	char text[WIRE_TEXT_MAX + 1];
	union {
		struct wire_pool_answer pool;
		struct wire_lanes_answer lanes;
	};
};

size_t wire_greeting_encode(const struct wire_greeting *m, uint8_t *buf);
size_t wire_proof_encode(const struct wire_proof *m, uint8_t *buf);
size_t wire_proven_encode(const struct wire_proven *m, uint8_t *buf);
size_t wire_pool_request_encode(const struct wire_pool_request *m, uint8_t *buf);
size_t wire_set_attr_encode(const struct wire_set_attr *m, uint8_t *buf);
size_t wire_lanes_encode(const struct wire_lanes *m, uint8_t *buf);
size_t wire_deep_encode(const struct wire_deep *m, uint8_t *buf);
size_t wire_close_encode(const struct wire_close *m, uint8_t *buf);
size_t wire_remove_encode(const struct wire_remove *m, uint8_t *buf);
size_t wire_answer_encode(const struct wire_answer *m, uint8_t *buf);

bool wire_greeting_decode(const uint8_t *buf, size_t len, struct wire_greeting *m);
bool wire_proof_decode(const uint8_t *buf, size_t len, struct wire_proof *m);
bool wire_proven_decode(const uint8_t *buf, size_t len, struct wire_proven *m);
bool wire_pool_request_decode(const uint8_t *buf, size_t len, struct wire_pool_request *m);
bool wire_set_attr_decode(const uint8_t *buf, size_t len, struct wire_set_attr *m);
bool wire_lanes_decode(const uint8_t *buf, size_t len, struct wire_lanes *m);
bool wire_deep_decode(const uint8_t *buf, size_t len, struct wire_deep *m);
bool wire_close_decode(const uint8_t *buf, size_t len, struct wire_close *m);
bool wire_remove_decode(const uint8_t *buf, size_t len, struct wire_remove *m);
bool wire_answer_decode(const uint8_t *buf, size_t len, struct wire_answer *m);

#endif
