/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: the headers of up to three parts, each as the first 144 bytes and the last 72 of its page.
 * Every check ends, and an intact header stays the same when it is encoded again.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "poolset/header.h"

#define HEAD 144
#define TAIL 72

static uint8_t pages[3][HEADER_BYTES];

static unsigned load(const uint8_t *data, size_t len)
{
	unsigned count = 0;

	memset(pages, 0, sizeof(pages));
	for (; count < 3 && len >= HEAD + TAIL; count++, len -= HEAD + TAIL) {
		memcpy(pages[count], data, HEAD);
		memcpy(pages[count] + HEADER_BYTES - TAIL, data + HEAD, TAIL);
		data += HEAD + TAIL;
	}
	return count;
}

static void try_again(const uint8_t *page)
{
	uint8_t again[HEADER_BYTES];
	struct header h;

	header_decode(page, &h);
	header_encode(&h, again);
	EXPECT(header_is_intact(again));
	/* The encoder writes a new shutdown state, so compare only the bytes before it. */
	if (header_is_intact(page))
		EXPECT(!memcmp(page, again, 4024));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const names[] = {"0", "1", "2"};
	struct header_set set = {pages, names, load(data, len), len & 1};
	struct header_sds now = {1, 2, 0};
	struct error err = {0};

	for (unsigned i = 0; i < set.count; i++) {
		try_again(pages[i]);
		header_sds_is_lost(pages[i], &now);
	}
	if (header_check(&set, &err))
		EXPECT(err.kind == ERROR_LOCAL && err.cause && err.text[0]);
	return 0;
}
