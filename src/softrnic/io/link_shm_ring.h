/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_ring.h -- a ring of bytes in memory that two processes share, with one writer and one
 * reader.
 *
 * The other end may write anything to the whole memory at any time. So each end keeps its own
 * position in private memory. In each operation it reads the other end's position only once and
 * checks it, and it reads no byte of the ring twice.
 *
 * An end that is about to wait sets its flag, and then checks the ring once more. The other end
 * moves its position, and then checks the flag. Both ends have a full fence between their two
 * steps, so at least one of them sees the change of the other end.
 */
#ifndef IO_LINK_SHM_RING_H
#define IO_LINK_SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define RING_LINE 64 /* length of a cache line in bytes */

/* The part of a ring's state that both ends map: one cache line for each end. Each end writes only
 * its own line, and the flag in the other end's line. */
struct ring_shared {
	_Alignas(RING_LINE) _Atomic uint64_t tail; /* position: number of bytes written so far */
	_Atomic uint32_t reader_sleeps;
	_Alignas(RING_LINE) _Atomic uint64_t head; /* position: number of bytes read so far */
	_Atomic uint32_t writer_sleeps;
};

/* The private part of one end. */
struct ring {
	struct ring_shared *shared;
	uint8_t *bytes;
	uint64_t size; /* a power of two */
	/* this end's position; its copy in the shared memory may be overwritten by the peer */
	uint64_t at;
	uint64_t seen;   /* the other end's position at the last check */
	uint64_t fenced; /* for the reader: its position at the last fence */
};

void ring_init(struct ring *r, struct ring_shared *shared, void *bytes, uint64_t size);

/* For the writer. Returns the number of written bytes, 0 if the ring is full, -EFAULT if the memory
 * of the first piece is gone, or -EPROTO if the reader's position is impossible. */
ssize_t ring_write(struct ring *r, const struct iovec *iov, int n);
/*
 * May be called instead of ring_write(): lends contiguous memory for the next bytes. Returns its
 * length, at most RING_LENT, or 0 if the ring is full or the reader's position is impossible
 * (ring_write() reports which). ring_commit() publishes the bytes that the caller stored there.
 */
#define RING_LENT (32u << 10)
size_t ring_lend(struct ring *r, void **to);
void ring_commit(struct ring *r, size_t len);
/* Called after a write: returns true if the reader sleeps. The caller must wake the reader; its
 * flag is cleared. */
bool ring_wakes_reader(struct ring *r);
/* Must be called before the writer waits for room. Returns 1 if there is room (do not wait), 0 if
 * the writer must wait, or -EPROTO. */
int ring_writer_sleeps(struct ring *r);
/* From now on the writer checks the ring by itself, and needs no wake-up. */
void ring_writer_wakes(struct ring *r);
bool ring_has_room(const struct ring *r);
/* Is enough of the ring free that a writer which checks the ring by itself should continue? */
bool ring_has_room_again(const struct ring *r);

/* For the reader. Returns the number of available bytes, or -EPROTO if the writer's position is
 * impossible. */
ssize_t ring_readable(struct ring *r);
/* Returns the next contiguous bytes in place. Must be called after ring_readable(). The peer may
 * change the bytes at any time. */
const void *ring_look(const struct ring *r, size_t *len);
void ring_consume(struct ring *r, size_t len);
/*
 * Must be called after bytes were taken, by a reader that does not wait for more. If the reader has
 * taken as many bytes as the ring holds since its last fence, a new fence must precede the check of
 * the writer's flag, because the writer may be waiting for this room. After fewer bytes the writer
 * cannot have found the ring full.
 */
static inline void ring_reader_rests(struct ring *r)
{
	if (r->at - r->fenced < r->size)
		return;
	r->fenced = r->at;
	atomic_thread_fence(memory_order_seq_cst);
}
/* Read into memory. The results are those of ring_write(); 0 means that the ring is empty. */
ssize_t ring_read(struct ring *r, const struct iovec *iov, int n);
/* Called after a read: is the writer waiting, and is so much of the ring free that the caller must
 * wake it? */
bool ring_wakes_writer(struct ring *r);
/* Must be called before the reader waits for bytes. Returns 1 if there are bytes (do not wait), 0
 * if the reader must wait, or -EPROTO. */
int ring_reader_sleeps(struct ring *r);
/* From now on the reader checks the ring by itself, and needs no wake-up. */
void ring_reader_wakes(struct ring *r);
/* Fetch the cache lines of the next bytes before the bytes arrive. The bytes then arrive together
 * with the position, and not after it. */
static inline void ring_expect(const struct ring *r)
{
	const uint8_t *next = r->bytes + (r->at & (r->size - 1));

	__builtin_prefetch(next);
	__builtin_prefetch(next + RING_LINE);
	__builtin_prefetch(next + 2 * RING_LINE);
}
/* Are there bytes? This is a cheap check, and its result is only a hint. */
static inline bool ring_is_pending(const struct ring *r)
{
	return atomic_load_explicit(&r->shared->tail, memory_order_acquire) != r->at;
}

#endif
