/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.h -- a message on the control stream: a header of 12 bytes and the body. On a sealed
 * stream a MAC follows: a keyed BLAKE2b-256 of the frame's number, the header and the body.
 *
 * Pure. The decoder returns nothing of a frame before the whole frame is in the buffer and its MAC
 * is right.
 */
#ifndef RPMEM_WIRE_FRAME_H
#define RPMEM_WIRE_FRAME_H

#include "rpmem/wire/proof.h"

#define WIRE_MAGIC   0x4d4d5052u /* "RPMM" */
#define WIRE_VERSION 1

#define WIRE_HEADER    12
#define WIRE_FRAME_MAX (WIRE_HEADER + WIRE_BODY_MAX + WIRE_MAC)

/* State of one direction of the stream. Zeroed: frames have no seal. */
struct wire_seal {
	bool on;
	uint64_t number; /* number of the next frame */
	struct wire_key key;
};

struct wire_frame {
	uint8_t type; /* may be a number outside enum wire_type */
	const uint8_t *body;
	size_t len;
};

void wire_seal_begin(struct wire_seal *seal, const struct wire_key *key);
/* Encode into buf[WIRE_FRAME_MAX]; len is at most WIRE_BODY_MAX. */
size_t wire_frame_encode(struct wire_seal *seal, enum wire_type type, const uint8_t *body,
			 size_t len, uint8_t *buf);
/*
 * Decode the first frame in the buffer. Returns the frame's length, and fills *frame, whose body
 * points into the buffer. 0: the frame is not complete. -EPROTO: the stream has another protocol.
 * -EPROTONOSUPPORT: another version. -EMSGSIZE: the frame is longer than any message. -EBADMSG: the
 * seal is wrong.
 */
int wire_frame_decode(struct wire_seal *seal, const uint8_t *buf, size_t len,
		      struct wire_frame *frame);

#endif
