/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_ring.h -- a ring of bytes in memory that two processes share, with one writer and one
 * reader.
 *
 * The other end may write anything to all of it at any time. So each end keeps its own position to
 * itself, reads the other's once an operation and checks it, and reads no byte of the ring twice.
 *
 * An end that is about to wait sets its flag, and then looks once more; the other one moves its
 * position, and then looks at the flag. Both have a full fence between, so that one of them sees
 * what the other did.
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

/* The shared part: a line for each end, which that end alone writes, but for the other's flag. */
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
	uint64_t seen;   /* the other end's, as it was read last */
	uint64_t fenced; /* the reader's: its position at the last fence */
};

void ring_init(struct ring *r, struct ring_shared *shared, void *bytes, uint64_t size);

/*
 * The writer. How many bytes were taken; 0: it is full. -EFAULT: the memory of the first piece is
 * gone; -EPROTO: the reader's position is impossible.
 */
ssize_t ring_write(struct ring *r, const struct iovec *iov, int n);
/* Instead: memory for the next bytes, as much as there is in one piece, RING_LENT at most; 0: it is
 * full, or the reader's position is impossible, which ring_write() finds. ring_commit() gives the
 * reader what was stored there. */
#define RING_LENT (32u << 10)
size_t ring_lend(struct ring *r, void **to);
void ring_commit(struct ring *r, size_t len);
/* After a write: does the reader sleep? It is to be woken then, and does not sleep any more. */
bool ring_wakes_reader(struct ring *r);
/* Before it waits for room: 1: there is some, do not wait; 0: wait; -EPROTO. */
int ring_writer_sleeps(struct ring *r);
/* It looks by itself from now on. */
void ring_writer_wakes(struct ring *r);
bool ring_has_room(const struct ring *r);
/* So much that it is worth a turn of the writer's, which looks by itself. */
bool ring_has_room_again(const struct ring *r);

/*
 * The reader. How many bytes are there; 0: none; -EPROTO: the writer's position is impossible.
 */
ssize_t ring_readable(struct ring *r);
/* The next bytes as far as they lie in one piece, after ring_readable(); they may change at any
 * time. */
const void *ring_look(const struct ring *r, size_t *len);
void ring_consume(struct ring *r, size_t len);
/*
 * After bytes were taken, by one who does not wait for more: once all of the ring is taken, a fence
 * has to be between that and the look at the writer's flag, as it may wait for just this room. Less
 * is not enough for a writer to have seen the ring full.
 */
static inline void ring_reader_rests(struct ring *r)
{
	if (r->at - r->fenced < r->size)
		return;
	r->fenced = r->at;
	atomic_thread_fence(memory_order_seq_cst);
}
/* As ring_write(), into memory. 0: nothing is there. */
ssize_t ring_read(struct ring *r, const struct iovec *iov, int n);
/* After a read: does the writer wait, and is there room enough that it is to be woken? */
bool ring_wakes_writer(struct ring *r);
/* Before it waits for bytes: 1: there are some, do not wait; 0: wait; -EPROTO. */
int ring_reader_sleeps(struct ring *r);
/* It looks by itself from now on. */
void ring_reader_wakes(struct ring *r);
/* Fetch the next bytes' cache lines while nothing is there yet: the bytes then come together
 * with the position, and not after it. */
static inline void ring_expect(const struct ring *r)
{
	const uint8_t *next = r->bytes + (r->at & (r->size - 1));

	__builtin_prefetch(next);
	__builtin_prefetch(next + RING_LINE);
	__builtin_prefetch(next + 2 * RING_LINE);
}
/* Is something there? Cheap, and only a hint. */
static inline bool ring_is_pending(const struct ring *r)
{
	return atomic_load_explicit(&r->shared->tail, memory_order_acquire) != r->at;
}

#endif
