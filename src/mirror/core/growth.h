/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * growth.h -- the growth of a set: decides the next step of a daemon for its host's copy, and for
 * an operator's order; pure. The three steps are described in member.h: first the files of each
 * in-sync copy grow, then the register gets the new size, then each copy takes the new size when
 * no process uses the copy.
 *
 * The caller extends files, asks other daemons, swaps, and maps the files again. The functions here
 * return the next step and get the step's result. Only one thread at a time may call them.
 */
#ifndef MIRROR_CORE_GROWTH_H
#define MIRROR_CORE_GROWTH_H

#include "mirror/core/member.h"

#define GROWTH_RETRY_MS  5000 /* pause after a failure, for instance for lack of disk space */
#define GROWTH_SILENT_MS 3000 /* a daemon that does not answer for this time counts as silent */

/* ---- one copy ---- */

/* All zero: no attempt was made. */
struct growth {
	bool is_running; /* the files of the copy are being extended, or cut off */
	bool is_cutting; /* the files are being cut off: meanwhile no room is available */
	uint64_t failed; /* the size for which the last attempt failed; 0: none */
	int error;       /* errno of that failure */
	char why[256];
	uint64_t retry_ms; /* time of the next attempt */
	uint64_t asked_ms; /* time at which a daemon last asked for room; 0: never */
};

/* Lengths of the files. */
struct growth_files {
	uint64_t data, meta;
};

enum growth_room {
	GROWTH_UNDER_WAY,
	GROWTH_HAS_ROOM, /* both files of the copy durably have the required length */
	/* the attempt failed, and nothing has changed; g->error and g->why have the reason */
	GROWTH_FAILED,
	GROWTH_BEGIN /* the caller extends the files now, and then calls growth_on_files() */
};

/* Check that the copy's files are long enough for a set of that size. If they are not, begin to
 * extend them. */
enum growth_room growth_make_room(struct growth *g, const struct member *m,
				  const struct growth_files *files, uint64_t size, uint64_t now_ms);
/* Returns the length of the part of the data file that belongs to the set or may soon belong to
 * it. Bytes beyond this part are foreign, and the caller cuts them off. */
uint64_t growth_keep(const struct member *m);
/* Report the end of an attempt: the files durably have that length (error 0), or the attempt
 * failed for the reason `why`. m: NULL if the copy was closed meanwhile. */
void growth_on_files(struct growth *g, struct member *m, uint64_t size, int error, const char *why,
		     uint64_t now_ms);

/*
 * Give back room that no order uses, because the order was refused and the register has kept the
 * size. Returns true after no daemon has asked for room for quiet_ms, which is longer than the swap
 * of an order takes. Then the caller cuts the data file off at the copy's size, and calls
 * growth_on_cut(). If such a swap succeeds even later, the copy extends its files again.
 */
bool growth_begin_cut(struct growth *g, const struct member *m, const struct mirror_record *rec,
		      uint64_t now_ms, uint64_t quiet_ms);
/* Report the end of a cut. m: NULL if the copy was closed meanwhile. After an error the cut is
 * tried again later. */
void growth_on_cut(struct growth *g, struct member *m, int error, uint64_t now_ms);

/* Returns true if the register is not split and names a larger size than the copy has. Then the
 * caller extends the files. When growth_may_take() returns true, the caller maps the copy again and
 * calls member_grow(). */
bool growth_is_due(const struct member *m, const struct mirror_record *rec);
bool growth_may_take(const struct growth *g, const struct member *m, uint64_t size);
/* Returns the reason why a process must not map the copy now (the copy is smaller than the
 * register's size), or NULL. */
const char *growth_obstacle(const struct growth *g, const struct member *m,
			    const struct mirror_record *rec);

/* ---- an operator's order ---- */

struct growth_order {
	uint64_t size; /* the ordered size; 0: there is no order */
	uint64_t begun_ms;
};

/* The last answer of a member's daemon. */
struct growth_answer {
	bool answers; /* the daemon has answered within the last seconds */
	/* id of the copy that answered; the answer does not count for a copy that replaced it */
	uint64_t copy_id;
	uint64_t size;         /* the size for which the daemon was asked */
	enum growth_room room; /* never GROWTH_BEGIN */
	int error;             /* with GROWTH_FAILED: an errno */
};

enum growth_step {
	GROWTH_WAITS,
	/* write the new size into the record, if the register still has the record that was
	 * passed */
	GROWTH_SWAP,
	GROWTH_SILENT, /* a member of the in-sync set does not answer: nothing changes */
	GROWTH_REFUSED /* a member cannot extend its files: nothing changes */
};

/* Returns the next step of an order. The caller asks all members of the in-sync set. If a member is
 * silent or has no room, the order fails immediately, even while other members still extend their
 * files. *slot: the member that decides the step. */
enum growth_step growth_order_next(const struct growth_order *order,
				   const struct mirror_record *rec,
				   const struct growth_answer answers[MIRROR_MEMBERS_MAX],
				   uint64_t now_ms, uint8_t *slot);

#endif
