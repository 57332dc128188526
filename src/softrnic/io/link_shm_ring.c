/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_shm_ring.h"

#include <errno.h>

#include "base/safecopy.h"
#include "softrnic/io/link.h"

/*
 * A long copy is published in parts of this length, so that the other end can continue meanwhile.
 */
#define RING_PART (32u << 10)

#define RING_FETCH (4 * RING_LINE)

#define RING_ROOM_SHARE 4 /* the writer continues when 1/4 of the ring is free */

void ring_init(struct ring *r, struct ring_shared *shared, void *bytes, uint64_t size)
{
	*r = (struct ring){.shared = shared, .bytes = bytes, .size = size};
}

static size_t ring_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Number of contiguous bytes of the ring from position `at` on, at most len. */
static size_t ring_piece(const struct ring *r, uint64_t at, size_t len)
{
	return ring_min(len, r->size - (at & (r->size - 1)));
}

/* --- the writer ----------------------------------------------------------------------------- */

/* Read the reader's position. It must be between the value of the last check and the writer's
 * position. */
static ssize_t ring_look_for_room(struct ring *r)
{
	uint64_t head = atomic_load_explicit(&r->shared->head, memory_order_acquire);

	if (r->at - head > r->size)
		return -EPROTO;
	r->seen = head;
	return (ssize_t)(r->size - (r->at - head));
}

static ssize_t ring_room(struct ring *r, size_t wanted)
{
	size_t room = r->size - (r->at - r->seen);

	return room >= wanted ? (ssize_t)room : ring_look_for_room(r);
}

bool ring_has_room(const struct ring *r)
{
	uint64_t head = atomic_load_explicit(&r->shared->head, memory_order_acquire);

	return r->at - head != r->size;
}

bool ring_has_room_again(const struct ring *r)
{
	uint64_t head = atomic_load_explicit(&r->shared->head, memory_order_acquire);
	uint64_t used = r->at - head;

	/* An impossible position counts as room; the next write then detects it. */
	return used <= r->size - r->size / RING_ROOM_SHARE || used > r->size;
}

void ring_commit(struct ring *r, size_t len)
{
	r->at += len;
	atomic_store_explicit(&r->shared->tail, r->at, memory_order_release);
}

/* Write one piece of memory to the ring. Returns the number of written bytes, or -EFAULT if no byte
 * could be written. */
static ssize_t ring_write_piece(struct ring *r, const uint8_t *from, size_t len,
				size_t *unpublished)
{
	size_t done = 0;

	while (done < len) {
		uint64_t at = r->at + *unpublished;
		size_t part = ring_piece(r, at, ring_min(len - done, RING_PART));

		if (safecopy(r->bytes + (at & (r->size - 1)), from + done, part))
			return done ? (ssize_t)done : -EFAULT;
		done += part;
		*unpublished += part;
		if (*unpublished >= RING_PART) {
			ring_commit(r, *unpublished);
			*unpublished = 0;
		}
	}
	return (ssize_t)done;
}

/* Write one short piece as a whole, if the known room is large enough. Returns false if the caller
 * must write the piece in the slower way. */
static bool ring_write_at_once(struct ring *r, const struct iovec *iov, size_t room)
{
	size_t len = iov->iov_len;

	if (len > RING_PART || len > room || ring_piece(r, r->at, len) < len ||
	    safecopy(r->bytes + (r->at & (r->size - 1)), iov->iov_base, len))
		return false;
	ring_commit(r, len);
	return true;
}

ssize_t ring_write(struct ring *r, const struct iovec *iov, int n)
{
	ssize_t room = ring_room(r, link_iov_len(iov, n)), got = 0;
	size_t done = 0, unpublished = 0;

	if (room <= 0)
		return room;
	if (n == 1 && ring_write_at_once(r, iov, (size_t)room))
		return (ssize_t)iov->iov_len;
	for (int i = 0; i < n && done < (size_t)room; i++) {
		size_t len = ring_min(iov[i].iov_len, (size_t)room - done);

		got = ring_write_piece(r, iov[i].iov_base, len, &unpublished);
		if (got < 0)
			break;
		done += (size_t)got;
		if ((size_t)got < len)
			break;
	}
	if (unpublished)
		ring_commit(r, unpublished);
	return done ? (ssize_t)done : got;
}

size_t ring_lend(struct ring *r, void **to)
{
	ssize_t room = ring_room(r, RING_LENT);

	*to = r->bytes + (r->at & (r->size - 1));
	return room > 0 ? ring_piece(r, r->at, ring_min((size_t)room, RING_LENT)) : 0;
}

bool ring_wakes_reader(struct ring *r)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&r->shared->reader_sleeps, memory_order_relaxed))
		return false;
	return atomic_exchange(&r->shared->reader_sleeps, 0) != 0;
}

int ring_writer_sleeps(struct ring *r)
{
	ssize_t room;

	atomic_store_explicit(&r->shared->writer_sleeps, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	room = ring_look_for_room(r);
	if (room != 0)
		ring_writer_wakes(r);
	return room > 0 ? 1 : (int)room;
}

void ring_writer_wakes(struct ring *r)
{
	atomic_store_explicit(&r->shared->writer_sleeps, 0, memory_order_relaxed);
}

/* --- the reader ----------------------------------------------------------------------------- */

/*
 * Request the first cache lines of new bytes all together, because they are in another CPU's cache.
 */
static void ring_fetch(const struct ring *r)
{
	uint64_t len = r->seen - r->at;

	len = len < RING_FETCH ? len : RING_FETCH;
	for (uint64_t i = 0; i < len; i += RING_LINE)
		__builtin_prefetch(r->bytes + ((r->at + i) & (r->size - 1)));
}

ssize_t ring_readable(struct ring *r)
{
	uint64_t tail;

	if (r->seen == r->at) {
		tail = atomic_load_explicit(&r->shared->tail, memory_order_acquire);
		if (tail - r->at > r->size)
			return -EPROTO;
		r->seen = tail;
		ring_fetch(r);
	}
	return (ssize_t)(r->seen - r->at);
}

const void *ring_look(const struct ring *r, size_t *len)
{
	*len = ring_piece(r, r->at, r->seen - r->at);
	return r->bytes + (r->at & (r->size - 1));
}

void ring_consume(struct ring *r, size_t len)
{
	r->at += len;
	atomic_store_explicit(&r->shared->head, r->at, memory_order_release);
}

/* Read available bytes into one piece of memory. Returns their number, -EFAULT or -EPROTO. */
static ssize_t ring_read_piece(struct ring *r, uint8_t *to, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t there = ring_readable(r);
		size_t part;
		const void *from;

		if (there <= 0)
			return done ? (ssize_t)done : there;
		from = ring_look(r, &part);
		part = ring_min(part, ring_min(len - done, RING_PART));
		if (safecopy(to + done, from, part))
			return done ? (ssize_t)done : -EFAULT;
		ring_consume(r, part);
		done += part;
	}
	return (ssize_t)done;
}

ssize_t ring_read(struct ring *r, const struct iovec *iov, int n)
{
	size_t done = 0;
	ssize_t got = 0;

	for (int i = 0; i < n; i++) {
		if (iov[i].iov_len == 0)
			continue;
		got = ring_read_piece(r, iov[i].iov_base, iov[i].iov_len);
		if (got <= 0)
			break;
		done += (size_t)got;
		if ((size_t)got < iov[i].iov_len)
			break;
	}
	return done ? (ssize_t)done : got;
}

/* The writer is woken when half of the ring is free. */
bool ring_wakes_writer(struct ring *r)
{
	if (!atomic_load_explicit(&r->shared->writer_sleeps, memory_order_relaxed) ||
	    r->seen - r->at > r->size / 2)
		return false;
	return atomic_exchange(&r->shared->writer_sleeps, 0) != 0;
}

int ring_reader_sleeps(struct ring *r)
{
	ssize_t there;

	atomic_store_explicit(&r->shared->reader_sleeps, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	there = ring_readable(r);
	if (there != 0)
		ring_reader_wakes(r);
	return there > 0 ? 1 : (int)there;
}

void ring_reader_wakes(struct ring *r)
{
	atomic_store_explicit(&r->shared->reader_sleeps, 0, memory_order_relaxed);
}
