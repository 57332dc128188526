/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extents.h -- a direct mapping: which extents the application can store to.
 *
 * An extent that is closed is read-only; the first store to it faults. It is opened when a slot of
 * the table of hot extents names it durably (W2). A reserve of slots is kept for such faults,
 * because the table (meta.h) belongs to another thread and a fault must not wait for that thread.
 * An extent gives its slot up in these steps: it becomes read-only, its unflushed bytes are
 * flushed, its bits are durable (W3). Until the last step a store opens it again at no cost.
 *
 *	closed --> opening --> open --> mirroring --> cooling --> closed
 *	                        ^-----------'
 *
 * Pure: a caller's lock protects all of it. The caller also changes the protection of memory under
 * this lock, where a contract below requires a change. Only extents_init() allocates.
 */
#ifndef MIRROR_CORE_EXTENTS_H
#define MIRROR_CORE_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#define EXTENTS_RESERVE_MAX 64u

enum extents_state {
	EXTENTS_CLOSED,    /* read-only */
	EXTENTS_OPENING,   /* its slot is being made durable */
	EXTENTS_OPEN,      /* writable */
	EXTENTS_MIRRORING, /* read-only; what was stored to it is being flushed */
	EXTENTS_COOLING    /* its slot is being given up */
};

struct extents_filled {
	uint32_t extent;
	uint16_t slot;
};

struct extents {
	uint32_t count;
	uint8_t *states; /* enum extents_state */
	uint8_t *pins;   /* 1: the extent stays open until it is flushed; atomic */
	uint32_t pinned;
	uint32_t reserve; /* number of slots that should be free */
	uint16_t slots[EXTENTS_RESERVE_MAX];
	uint32_t slot_count;
	uint32_t opening; /* number of extents in EXTENTS_OPENING */
	struct extents_filled filled[EXTENTS_RESERVE_MAX];
	uint32_t filled_count;
	bool is_untracked; /* extents need no slots any more */
	int error;         /* -errno: a slot could not be made durable */
};

/* hot_slots: number of slots in the table. Returns 0 or -ENOMEM. */
int extents_init(struct extents *x, uint32_t count, uint32_t hot_slots);
void extents_fini(struct extents *x);

/* ---- for stores ---- */

enum extents_step {
	EXTENTS_WRITABLE, /* stores are permitted already */
	EXTENTS_FILL,     /* make *slot name the extent durably, then call extents_fill_ended() */
	EXTENTS_PERMIT,   /* permit stores to the extent, then call extents_opened() */
	EXTENTS_WAIT      /* wait until the extent's state changes */
};
enum extents_step extents_begin(struct extents *x, uint32_t extent, uint16_t *slot);
/* error 0: the caller permits stores, then calls extents_opened(). error -errno: the slot is
 * lost. */
void extents_fill_ended(struct extents *x, uint32_t extent, uint16_t slot, int error);
/* ok: the caller has permitted stores. */
void extents_opened(struct extents *x, uint32_t extent, bool ok);

/* Does the reserve have too few slots? */
bool extents_is_low(const struct extents *x);
/* Returns the number of slots filled since the last call. The caller adopts them into the table
 * (meta.h). */
uint32_t extents_take_filled(struct extents *x, struct extents_filled *filled);
/* The number of slots that the reserve lacks; the caller adds that many. */
uint32_t extents_lacks(const struct extents *x);
void extents_add_slots(struct extents *x, const uint16_t *slots, uint32_t n);

/* ---- for the thread that makes extents cold ---- */

/* Can the extent be made cold? Not while it is pinned or being opened. */
bool extents_may_cool(const struct extents *x, uint32_t extent);
/* True: the caller forbids stores to the extent, then flushes it. False: the extent is not open,
 * or is pinned. */
bool extents_mirror(struct extents *x, uint32_t extent);
/* The extent is flushed. Returns false if a store has opened it again meanwhile. */
bool extents_cool(struct extents *x, uint32_t extent);
/* The extent's slot is free again. */
void extents_cooled(struct extents *x, uint32_t extent);

/* ---- any thread, without the lock ---- */

/* Once open, the extent stays open until extents_unpin(). Returns false if `most` extents are
 * pinned already. */
bool extents_pin(struct extents *x, uint32_t extent, uint32_t most);
void extents_unpin(struct extents *x, uint32_t extent);

#endif
