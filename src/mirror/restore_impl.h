/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MIRROR_RESTORE_IMPL_H
#define MIRROR_RESTORE_IMPL_H

#include <setjmp.h>
#include <stdatomic.h>

#include "mirror/fault.h"
#include "mirror/restore.h"

#define RESTORE_REQUESTS 64 /* greatest number of waiting threads; further ones take turns */
#define RESTORE_PAST     (2 * RESTORE_REQUESTS)
#define RESTORE_PIECE    (64u << 10) /* bytes that are read at once */
#define RESTORE_NEWS     64

/* The result for a page. */
enum restore_verdict {
	RESTORE_FAILED, /* the page still cannot be read */
	RESTORE_WHOLE,  /* nothing is lost: repeat the access */
	RESTORE_LOST    /* it has the last flushed bytes; later stores are lost, or may be */
};

enum restore_state { /* state of a request; both sides change it */
		     RESTORE_FREE,
		     RESTORE_TAKEN, /* taken by the thread that asks */
		     RESTORE_ASKED,
		     RESTORE_SERVED, /* the restore thread works on it */
		     RESTORE_DONE,
		     RESTORE_ABANDONED /* no thread waits for it any more */
};

enum restore_flags {
	RESTORE_POISON = 1,  /* the memory is bad, not only missing */
	RESTORE_LIBRARY = 2, /* the request is not caused by an access of the application */
};

struct restore_request {
	_Atomic unsigned state; /* enum restore_state; a futex */
	uint64_t offset;        /* offset of the page */
	uint64_t ticket;        /* the time of the fault, by restore.clock */
	unsigned flags;
	enum restore_verdict verdict;
};

/* A page that was restored. A fault that is older has the same cause. */
struct restore_past {
	uint64_t offset, len;
	uint64_t stamp; /* by restore.clock */
	uint64_t at_ns;
	unsigned times; /* number of restores in short succession */
	enum restore_verdict verdict;
};

/* A report about a page. */
struct restore_news {
	uint64_t offset, len;
	enum restore_verdict verdict;
	unsigned slot; /* the member that had its bytes; MIRROR_NO_SLOT: none */
};

enum restore_use { RESTORE_NO_LANE, RESTORE_IDLE, RESTORE_READING };

struct restore_lane {
	struct link link;     /* used by the background thread; a reader uses its connection */
	_Atomic unsigned use; /* enum restore_use */
	atomic_bool has_failed;
	uint64_t retry_ms;
};

struct restore {
	struct rpmirror *m;
	uint64_t serial; /* serial number of the mapping */
	pthread_t thread;
	bool has_thread;
	atomic_bool stopping;
	int wake_fd, pagemap_fd;
	struct fault_watch *app_watch, *shared_watch, *store_watch;
	bool signals;         /* a loss raises the signal (RPMIRROR_ON_MEDIUM) */
	uint64_t patience_ns; /* for one member */

	_Atomic unsigned sources; /* mirror_mask: members that have all flushes */
	struct restore_lane lanes[MIRROR_MEMBERS_MAX];
	struct link_place place;
	/* a piece for each member, so that a late answer cannot overwrite another one's */
	uint8_t *buffers;
	struct rpma_mr_local *mr;
	uint64_t reads; /* their number; each has its own */

	_Atomic uint64_t clock;
	_Atomic unsigned progress; /* changes with each step of the restore thread */
	struct restore_request requests[RESTORE_REQUESTS];
	_Atomic uint64_t later; /* offset + 1 of a page that no thread waits for, or 0 */
	struct restore_past past[RESTORE_PAST];
	unsigned past_next;
	atomic_bool holds_flushes;
	atomic_bool is_frozen, is_writing;
	atomic_int failed; /* the file cannot be written: errno */

	/* Passed from the restore thread to the thread that has the set's lock. */
	struct restore_news news[RESTORE_NEWS];
	_Atomic unsigned news_in, news_out;
	struct restore_news held; /* the thread's: not in the ring yet; len 0: none */
	atomic_bool is_full;      /* held could not be put into it, */
	atomic_bool is_loss;      /* and it reports a loss */
};

/* restore_thread.c */
void *restore_main(void *r);
void restore_wake(struct restore *r);

/* restore_lane.c: read into memory that stays until the next read; NULL: no member has it.
 * *slot: the member to begin with; then the one that had the bytes. */
const uint8_t *restore_read(struct restore *r, uint64_t offset, uint32_t len, unsigned *slot);

/* restore_page.c, in the restore thread */
enum restore_verdict restore_page(struct restore *r, const struct restore_request *q);

/* restore_news.c, likewise */
void restore_report(struct restore *r, const struct restore_news *news);
void restore_send_held(struct restore *r);

/* restore_fault.c */
enum restore_verdict restore_ask(struct restore *r, uint64_t offset, unsigned flags);
int restore_watch(struct restore *r);
void restore_unwatch(struct restore *r);

#endif
