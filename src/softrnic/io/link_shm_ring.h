/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_ring.h -- a ring of bytes in memory that two processes share, with one writer and one
 * reader.
 *
 * The other end may write anything to the whole memory at any time. So each end keeps its own
 * position in private memory, reads and checks the other's position once in each operation, and
 * reads no byte of the ring twice.
 *
 * An end that is about to wait sets its flag, and then checks the ring once more. The other end
 * moves its position, and then checks the flag. Both have a full fence between the two steps, so
 * that one of the ends sees the other's change.
 */
#ifndef IO_LINK_SHM_RING_H
#define IO_LINK_SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define RING_LINE 64 /* bytes of a cache line */

/* The shared part: one cache line for each end. Only that end writes it, except the other end's
 * flag. */
struct ring_shared {
	_Alignas(RING_LINE) _Atomic uint64_t tail; /* bytes written so far */
	_Atomic uint32_t reader_sleeps;
	_Alignas(RING_LINE) _Atomic uint64_t head; /* bytes read so far */
	_Atomic uint32_t writer_sleeps;
};

/* One end's own part. */
struct ring {
	struct ring_shared *shared;
	uint8_t *bytes;
	uint64_t size;   /* a power of two */
	uint64_t at;     /* this end's position; the peer may overwrite the copy in the shared
			    memory */
	uint64_t seen;   /* the other end's position at the last check */
	uint64_t fenced; /* the reader's: its position at the last fence */
};

void ring_init(struct ring *r, struct ring_shared *shared, void *bytes, uint64_t size);

/* For the writer. Returns the number of written bytes; 0: the ring is full. -EFAULT: the memory of
 * the first piece is gone; -EPROTO: the reader's position is impossible. */
ssize_t ring_write(struct ring *r, const struct iovec *iov, int n);
/*
 * Instead of ring_write(): memory for the next bytes, contiguous, at most RING_LENT; 0: the ring is
 * full, or the reader's position is impossible, which ring_write() reports. ring_commit() publishes
 * the stored bytes.
 */
#define RING_LENT (32u << 10)
size_t ring_lend(struct ring *r, void **to);
void ring_commit(struct ring *r, size_t len);
/* After a write: does the reader sleep? Then the caller must wake it, and its flag is cleared. */
bool ring_wakes_reader(struct ring *r);
/* To be called before the writer waits for room. Returns 1: there is room, do not wait; 0: wait;
 * -EPROTO. */
int ring_writer_sleeps(struct ring *r);
/* From now on the writer polls the ring, and needs no wake-up. */
void ring_writer_wakes(struct ring *r);
bool ring_has_room(const struct ring *r);
/* Is there so much room that it is worth a turn of the writer, which polls the ring? */
bool ring_has_room_again(const struct ring *r);

/* For the reader. Returns the number of available bytes; 0: none; -EPROTO: the writer's position is
 * impossible. */
ssize_t ring_readable(struct ring *r);
/* The next bytes in place, as far as contiguous, after ring_readable(). They may change at any
 * time. */
const void *ring_look(const struct ring *r, size_t *len);
void ring_consume(struct ring *r, size_t len);
/*
 * To be called after bytes were taken, by a reader that does not wait for more. After as many bytes
 * as the ring holds, a fence must precede the check of the writer's flag, because the writer may
 * wait for just this room. After fewer bytes since the last fence the writer cannot have seen the
 * ring full.
 */
static inline void ring_reader_rests(struct ring *r)
{
	if (r->at - r->fenced < r->size)
		return;
	r->fenced = r->at;
	atomic_thread_fence(memory_order_seq_cst);
}
/* As ring_write(), into memory. Returns 0 if the ring is empty. */
ssize_t ring_read(struct ring *r, const struct iovec *iov, int n);
/* After a read: does the writer wait, and is there enough room that the caller must wake it? */
bool ring_wakes_writer(struct ring *r);
/* To be called before the reader waits for bytes. Returns 1: there are some, do not wait; 0: wait;
 * -EPROTO. */
int ring_reader_sleeps(struct ring *r);
/* From now on the reader polls the ring, and needs no wake-up. */
void ring_reader_wakes(struct ring *r);
/* Fetch the cache lines of the next bytes before they arrive: then the bytes come together with the
 * position, and not after it. */
static inline void ring_expect(const struct ring *r)
{
	const uint8_t *next = r->bytes + (r->at & (r->size - 1));

	__builtin_prefetch(next);
	__builtin_prefetch(next + RING_LINE);
	__builtin_prefetch(next + 2 * RING_LINE);
}
/* Are there bytes? Cheap, and only a hint. */
static inline bool ring_is_pending(const struct ring *r)
{
	return atomic_load_explicit(&r->shared->tail, memory_order_acquire) != r->at;
}

#endif
