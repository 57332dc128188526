/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * extents.h -- for a direct mapping: keeps track of the extents to which the application can
 * store.
 *
 * An extent that is closed is read-only; the first store to it faults. The extent is opened after
 * a slot of the table of hot extents names it durably (W2). A reserve of slots is kept for such
 * faults, because the table (meta.h) belongs to another thread and a fault must not wait for that
 * thread. An extent gives up its slot in these steps: it becomes read-only, its unflushed bytes
 * are flushed, its bits become durable (W3). Before the last step a store opens the extent again
 * at no cost.
 *
 *         closed --> opening --> open --> mirroring --> cooling --> closed
 *                                 ^-----------'
 *
 * Pure: the caller's lock protects the whole structure. The caller also changes the protection of
 * memory under this lock, where a comment below requires a change. Only extents_init() allocates.
 */
#ifndef MIRROR_CORE_EXTENTS_H
#define MIRROR_CORE_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

#define EXTENTS_RESERVE_MAX 64u

enum extents_state {
	EXTENTS_CLOSED,    /* read-only */
	EXTENTS_OPENING,   /* the extent's slot is being made durable */
	EXTENTS_OPEN,      /* writable */
	EXTENTS_MIRRORING, /* read-only; the bytes stored to it are being flushed */
	EXTENTS_COOLING    /* the extent's slot is being given up */
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
	bool is_untracked; /* extents do not need slots any more */
	int error;         /* -errno if a slot could not be made durable, else 0 */
};

/* hot_slots: number of slots in the table. Returns 0 or -ENOMEM. */
int extents_init(struct extents *x, uint32_t count, uint32_t hot_slots);
void extents_fini(struct extents *x);

/* ---- for stores ---- */

enum extents_step {
	EXTENTS_WRITABLE, /* stores are permitted already */
	EXTENTS_FILL,     /* make *slot name the extent durably, then call extents_fill_ended() */
	EXTENTS_PERMIT,   /* permit stores to the extent, then call extents_opened() */
	EXTENTS_WAIT      /* wait for a change of the extent's state */
};
enum extents_step extents_begin(struct extents *x, uint32_t extent, uint16_t *slot);
/* Report the end of EXTENTS_FILL. error 0: the caller next permits stores, then calls
 * extents_opened(). error -errno: the slot is lost. */
void extents_fill_ended(struct extents *x, uint32_t extent, uint16_t slot, int error);
/* Report the end of EXTENTS_PERMIT. ok: the caller has permitted stores. */
void extents_opened(struct extents *x, uint32_t extent, bool ok);

/* Returns true if the reserve has too few slots. */
bool extents_is_low(const struct extents *x);
/* Returns the number of slots that were filled since the last call. The caller adopts these slots
 * into the table (meta.h). */
uint32_t extents_take_filled(struct extents *x, struct extents_filled *filled);
/* Returns the number of slots that the reserve lacks. The caller adds that many. */
uint32_t extents_lacks(const struct extents *x);
void extents_add_slots(struct extents *x, const uint16_t *slots, uint32_t n);

/* ---- for the thread that makes extents cold ---- */

/* Returns true if the extent can be made cold: it is neither pinned nor being opened. */
bool extents_may_cool(const struct extents *x, uint32_t extent);
/* Begin to make the extent cold. Returns true if the caller has to forbid stores to the extent and
 * then flush it; false if the extent is not open, or is pinned. */
bool extents_mirror(struct extents *x, uint32_t extent);
/* Report that the extent is flushed. Returns false if a store has opened the extent again
 * meanwhile. */
bool extents_cool(struct extents *x, uint32_t extent);
/* Report that the extent's slot is free again. */
void extents_cooled(struct extents *x, uint32_t extent);

/* ---- any thread, without the lock ---- */

/* Pin an extent: if it is open, it stays open until extents_unpin(). Returns false if `most`
 * extents are pinned already. */
bool extents_pin(struct extents *x, uint32_t extent, uint32_t most);
void extents_unpin(struct extents *x, uint32_t extent);

#endif
