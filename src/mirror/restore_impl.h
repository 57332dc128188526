/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MIRROR_RESTORE_IMPL_H
#define MIRROR_RESTORE_IMPL_H

#include <setjmp.h>
#include <stdatomic.h>

#include "mirror/fault.h"
#include "mirror/restore.h"

/* largest number of threads with a request; further threads wait for a free request */
#define RESTORE_REQUESTS 64
#define RESTORE_PAST     (2 * RESTORE_REQUESTS)
#define RESTORE_PIECE    (64u << 10) /* number of bytes of one read */
#define RESTORE_NEWS     64

/* The result for a page. */
enum restore_verdict {
	RESTORE_FAILED, /* the page still cannot be read */
	RESTORE_WHOLE,  /* no byte is lost: repeat the access */
	/* the page has the last flushed bytes; later stores are lost, or may be lost */
	RESTORE_LOST
};

/* State of a request. The thread that made the request and the restore thread change it. */
enum restore_state {
	RESTORE_FREE,
	RESTORE_TAKEN, /* a thread is filling in the request */
	RESTORE_ASKED,
	RESTORE_SERVED, /* the restore thread works on it */
	RESTORE_DONE,
	RESTORE_ABANDONED /* no thread waits for it any more */
};

enum restore_flags {
	RESTORE_POISON = 1,  /* the memory is bad, not only missing */
	RESTORE_LIBRARY = 2, /* the request does not come from an access of the application */
};

struct restore_request {
	_Atomic unsigned state; /* enum restore_state; a futex */
	uint64_t offset;        /* offset of the page */
	uint64_t ticket;        /* time of the fault, as a value of restore.clock */
	unsigned flags;
	enum restore_verdict verdict;
};

/* A page that was restored. A fault that is older than the restoration has the same cause. */
struct restore_past {
	uint64_t offset, len;
	uint64_t stamp; /* time of the restoration, as a value of restore.clock */
	uint64_t at_ns;
	unsigned times; /* number of restorations in short succession */
	enum restore_verdict verdict;
};

/* A report about a page. */
struct restore_news {
	uint64_t offset, len;
	enum restore_verdict verdict;
	unsigned slot; /* the member that had the page's bytes; MIRROR_NO_SLOT: none had them */
};

enum restore_use { RESTORE_NO_LANE, RESTORE_IDLE, RESTORE_READING };

struct restore_lane {
	/* the background thread uses the link; a reading thread uses only its connection */
	struct link link;
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
	bool signals;         /* a loss of bytes raises the signal (RPMIRROR_ON_MEDIUM) */
	uint64_t patience_ns; /* time limit for the answer of one member */

	_Atomic unsigned sources; /* a mirror_mask of the members that have all flushes */
	struct restore_lane lanes[MIRROR_MEMBERS_MAX];
	struct link_place place;
	/* memory for a piece of each member, so that a late answer cannot overwrite the bytes of
	 * another member */
	uint8_t *buffers;
	struct rpma_mr_local *mr;
	uint64_t reads; /* number of reads so far; each read has a number */

	_Atomic uint64_t clock;
	_Atomic unsigned progress; /* changes with each step of the restore thread */
	struct restore_request requests[RESTORE_REQUESTS];
	_Atomic uint64_t later; /* offset + 1 of a page that no thread waits for, or 0 */
	struct restore_past past[RESTORE_PAST];
	unsigned past_next;
	atomic_bool holds_flushes;
	atomic_bool is_frozen, is_writing;
	atomic_int failed; /* errno if the file cannot be written, else 0 */

	/* Reports that the restore thread passes to the thread that holds the set's lock. */
	struct restore_news news[RESTORE_NEWS];
	_Atomic unsigned news_in, news_out;
	/* only for the restore thread: a report that is not in the ring yet; len 0: none */
	struct restore_news held;
	atomic_bool is_full; /* `held` did not fit into the ring */
	atomic_bool is_loss; /* `held` reports a loss */
};

/* restore_thread.c: the thread that restores pages. */
void *restore_main(void *r);
void restore_wake(struct restore *r);

/* restore_lane.c: reads bytes from a member into memory that stays valid until the next read.
 * Returns NULL if no member has the bytes. *slot: on entry the member to begin with, on return the
 * member that had the bytes. */
const uint8_t *restore_read(struct restore *r, uint64_t offset, uint32_t len, unsigned *slot);

/* restore_page.c: restores the page of a request; called by the restore thread. */
enum restore_verdict restore_page(struct restore *r, const struct restore_request *q);

/* restore_news.c: passes reports to the thread that holds the set's lock; called by the restore
 * thread. */
void restore_report(struct restore *r, const struct restore_news *news);
void restore_send_held(struct restore *r);

/* restore_fault.c: the handler of faults. */
enum restore_verdict restore_ask(struct restore *r, uint64_t offset, unsigned flags);
int restore_watch(struct restore *r);
void restore_unwatch(struct restore *r);

#endif
