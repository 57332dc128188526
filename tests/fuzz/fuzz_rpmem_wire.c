/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: a message of librpmem's control stream or lanes. The first byte chooses the decoder; a
 * decoded message must encode to the same bytes.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "rpmem/wire/frame.h"
#include "rpmem/wire/lane.h"

static union {
	struct wire_greeting greeting;
	struct wire_proof proof;
	struct wire_proven proven;
	struct wire_pool_request pool;
	struct wire_set_attr set_attr;
	struct wire_lanes lanes;
	struct wire_deep deep;
	struct wire_close close;
	struct wire_remove remove;
	struct wire_answer answer;
	struct wire_persist persist;
	struct wire_persisted persisted;
} message;

#define TRY(name, member)                                                                          \
	static void try_##name(const uint8_t *data, size_t len)                                    \
	{                                                                                          \
		static uint8_t buf[WIRE_BODY_MAX];                                                 \
                                                                                                   \
		if (!wire_##name##_decode(data, len, &message.member))                             \
			return;                                                                    \
		EXPECT(wire_##name##_encode(&message.member, buf) == len);                         \
		EXPECT(!memcmp(buf, data, len));                                                   \
	}
TRY(greeting, greeting)
TRY(proof, proof)
TRY(proven, proven)
TRY(pool_request, pool)
TRY(set_attr, set_attr)
TRY(lanes, lanes)
TRY(deep, deep)
TRY(close, close)
TRY(remove, remove)
TRY(answer, answer)
TRY(persist, persist)
TRY(persisted, persisted)

static const struct wire_key key = {{1, 2, 3}};

static void try_frames(const uint8_t *data, size_t len)
{
	struct wire_seal plain = {0}, sealed = {0};
	struct wire_frame frame;
	size_t at = 0;
	int n;

	while ((n = wire_frame_decode(&plain, data + at, len - at, &frame)) > 0) {
		EXPECT(frame.body >= data + at && frame.body + frame.len <= data + len);
		at += (size_t)n;
		EXPECT(at <= len);
	}
	wire_seal_begin(&sealed, &key);
	wire_frame_decode(&sealed, data, len, &frame);
}

static void try_lane(const uint8_t *data, size_t len)
{
	struct wire_lane_reply reply;
	uint32_t lane;

	wire_lane_request_decode(&key, 1, data, len, &lane);
	if (wire_lane_reply_decode(&key, 0, 1, data, len, &reply))
		EXPECT(reply.mr_len <= WIRE_DESC_MAX && reply.pcfg_len <= WIRE_DESC_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const tries[])(const uint8_t *, size_t) = {
		try_frames,   try_greeting, try_proof,     try_proven, try_pool_request,
		try_set_attr, try_lanes,    try_deep,      try_close,  try_remove,
		try_answer,   try_persist,  try_persisted, try_lane};

	if (len < 1 || len > WIRE_FRAME_MAX)
		return 0;
	tries[data[0] % (sizeof(tries) / sizeof(tries[0]))](data + 1, len - 1);
	return 0;
}
