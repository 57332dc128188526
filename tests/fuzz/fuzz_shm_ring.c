/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring whose other end is hostile. Input: steps in which the other end sets positions and flags
 * or writes bytes, and in which this end makes calls. Each call stays within the ring, moves this
 * end's position by the amount that the call returns, and returns.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/io/link_shm_ring.h"

#define SIZE 64u
#define STEP 10u /* bytes of a step in the input: opcode, amount, position */

static uint8_t buf[3 * SIZE];

static void expect_moved(const struct ring *r, uint64_t before, ssize_t ret, size_t most)
{
	EXPECT(ret == -EPROTO || (ret >= 0 && (size_t)ret <= most));
	EXPECT(r->at - before == (ret > 0 ? (uint64_t)ret : 0));
}

static void ours(struct ring *w, struct ring *r, uint8_t what, size_t len)
{
	struct iovec iov[2] = {{buf, len / 2}, {buf + len / 2, len - len / 2}};
	uint64_t before;
	ssize_t ret;
	size_t piece;

	switch (what % 6) {
	case 0:
		before = w->at;
		ret = ring_write(w, iov, 2);
		expect_moved(w, before, ret, len < SIZE ? len : SIZE);
		break;
	case 1:
		before = r->at;
		ret = ring_read(r, iov, 2);
		expect_moved(r, before, ret, len);
		break;
	case 2:
		if (ring_readable(r) <= 0)
			break;
		before = r->at;
		EXPECT((const uint8_t *)ring_look(r, &piece) + piece <= r->bytes + SIZE);
		memcpy(buf, ring_look(r, &piece), piece);
		ring_consume(r, piece);
		expect_moved(r, before, (ssize_t)piece, SIZE);
		break;
	case 3:
		EXPECT(ring_reader_sleeps(r) <= 1);
		EXPECT(ring_writer_sleeps(w) <= 1);
		break;
	case 4:
		ring_wakes_reader(w);
		/* only one wake-up is due until the flag is set again */
		EXPECT(!ring_wakes_reader(w));
		ring_wakes_writer(r);
		EXPECT(!ring_wakes_writer(r));
		break;
	default:
		ring_has_room(w);
		ring_is_pending(r);
	}
	EXPECT(w->at - w->seen <= SIZE && r->seen - r->at <= SIZE);
}

static void theirs(struct ring *w, struct ring *r, const uint8_t *step)
{
	uint64_t position;

	memcpy(&position, step + 2, sizeof(position));
	/* choose a position near the present one, which is more likely to be valid */
	if (step[0] & 0x40)
		position = r->at + position % (2 * SIZE);
	switch (step[1] % 4) {
	case 0:
		atomic_store(&r->shared->tail, position);
		break;
	case 1:
		atomic_store(&w->shared->head, position);
		break;
	case 2:
		atomic_store(&w->shared->reader_sleeps, (uint32_t)position);
		atomic_store(&w->shared->writer_sleeps, (uint32_t)(position >> 32));
		break;
	default:
		r->bytes[position % SIZE] = step[9];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ring_shared *shared = aligned_alloc(RING_LINE, sizeof(*shared));
	/* a block of exactly this size, so that a sanitizer reports a read past the end */
	uint8_t *bytes = malloc(SIZE);
	struct ring w, r;

	if (!shared || !bytes)
		abort();
	memset(shared, 0, sizeof(*shared));
	memset(bytes, 0, SIZE);
	ring_init(&w, shared, bytes, SIZE);
	ring_init(&r, shared, bytes, SIZE);
	for (; len >= STEP; data += STEP, len -= STEP) {
		if (data[0] & 0x80)
			theirs(&w, &r, data);
		else
			ours(&w, &r, data[0], data[1] % sizeof(buf));
	}
	free(bytes);
	free(shared);
	return 0;
}
