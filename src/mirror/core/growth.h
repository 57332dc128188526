/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * growth.h -- a set gets larger: the next step of a daemon for its host's copy, and for an
 * operator's order; pure. The three steps are those of member.h: the files of each in-sync copy,
 * the register, and then each copy when no process uses it.
 *
 * The caller makes files longer, asks other daemons, swaps and maps the files anew. It asks here
 * for the next step, and reports the result here. One thread at a time.
 */
#ifndef MIRROR_CORE_GROWTH_H
#define MIRROR_CORE_GROWTH_H

#include "mirror/core/member.h"

#define GROWTH_RETRY_MS  5000 /* after the disk was too small, for instance */
#define GROWTH_SILENT_MS 3000 /* so long another daemon may not answer */

/* ---- one copy ---- */

/* Zero: nothing was tried. */
struct growth {
	bool is_running; /* the files of the copy are made longer */
	uint64_t failed; /* they could not be made longer for that size, */
	int error;       /* an errno, */
	char why[256];
	uint64_t retry_ms; /* and are not tried again before */
};

/* How long the files are. */
struct growth_files {
	uint64_t data, meta;
};

enum growth_room {
	GROWTH_UNDER_WAY,
	GROWTH_HAS_ROOM, /* both files of the copy suffice, durably */
	GROWTH_FAILED,   /* nothing has changed; g->error and g->why */
	GROWTH_BEGIN     /* the caller makes the files longer now, and calls growth_on_files() */
};

/* Has the copy room for a set of that size? If not, the work for that begins. */
enum growth_room growth_make_room(struct growth *g, const struct member *m,
				  const struct growth_files *files, uint64_t size, uint64_t now_ms);
/* The part of the data file that belongs to the set, or may soon. What lies beyond it is
 * foreign, and is cut off. */
uint64_t growth_keep(const struct member *m);
/* The files have that length, durably (error 0), or could not get it: `why`. m: NULL if the copy
 * was closed meanwhile. */
void growth_on_files(struct growth *g, struct member *m, uint64_t size, int error, const char *why,
		     uint64_t now_ms);

/* By the register, which is not split, the copy is to be larger. Its files get longer, and once
 * growth_may_take() is true, it is mapped anew and member_grow() is called. */
bool growth_is_due(const struct member *m, const struct mirror_record *rec);
bool growth_may_take(const struct growth *g, const struct member *m, uint64_t size);
/* A process must not map the copy while it is smaller than the register's size: the reason, or
 * NULL. */
const char *growth_obstacle(const struct growth *g, const struct member *m,
			    const struct mirror_record *rec);

/* ---- an operator's order ---- */

struct growth_order {
	uint64_t size; /* the ordered size; 0: there is no order */
	uint64_t begun_ms;
};

/* The last answer of a member's daemon. */
struct growth_answer {
	bool answers;          /* it did in the last seconds, */
	uint64_t copy_id;      /* the copy that answered: a copy that replaced it has not */
	uint64_t size;         /* the size in the question */
	enum growth_room room; /* not BEGIN */
	int error;             /* FAILED: an errno */
};

enum growth_step {
	GROWTH_WAITS,
	/* write that size into the record, if the record is still the one given here */
	GROWTH_SWAP,
	GROWTH_SILENT, /* a member of the in-sync set cannot be asked: nothing changes */
	GROWTH_REFUSED /* it has no room: nothing changes */
};

/* All of the in-sync set are asked, in the order of their slots; *slot: the member that decides. */
enum growth_step growth_order_next(const struct growth_order *order,
				   const struct mirror_record *rec,
				   const struct growth_answer answers[MIRROR_MEMBERS_MAX],
				   uint64_t now_ms, uint8_t *slot);

#endif
