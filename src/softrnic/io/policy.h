/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.h -- decides when a Write is sent, which thread receives, how long a leader spins, and
 * when the engine checks again.
 *
 * Pure: no clock, no lock, no descriptor. The caller passes the time, and holds the lock of the
 * objects that it passes. doc/policy.md has the rules in words, and the benchmark that shows the
 * gain of each.
 */
#ifndef IO_POLICY_H
#define IO_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* --- when a Write is sent ------------------------------------------------------------------- */

/* The history of one connection's Writes and Sends without a completion. */
struct policy_send {
	uint64_t sent_at;      /* of a Write that was not deferred; 0: none since the post */
	unsigned followed;     /* Writes in a row that the next post followed soon */
	unsigned needed;       /* number of followed Writes after which a Write is deferred */
	unsigned sends;        /* Sends in a row, without a poll of the CQ between them */
	unsigned sends_needed; /* number of Sends after which a Send is deferred */
	bool alone;            /* no post followed the deferred one */
	bool late;             /* the alarm sent a lone Write, and no post followed since */
};

enum policy_write {
	POLICY_SEND,  /* send it now, with all deferred ones; after a Write policy_sent() follows */
	POLICY_WAIT,  /* defer it; the caller sets an alarm */
	POLICY_JOINS, /* it joins the deferred ones */
};

/* The posted requests. Writes and Sends without a completion count as such only on a link where a
 * send costs more than an alarm. */
enum policy_posted {
	POLICY_OTHER,
	POLICY_A_WRITE,
	POLICY_A_SEND, /* only Sends are unsent */
};

void policy_send_init(struct policy_send *s);
/* Does policy_on_post() need the time? Otherwise `now` may be 0. */
static inline bool policy_post_needs_time(const struct policy_send *s)
{
	return s->sent_at != 0;
}
/* Requests were posted. waiting: a Write or a Send is already deferred. */
enum policy_write policy_on_post(struct policy_send *s, enum policy_posted posted, bool waiting,
				 uint64_t now);
/* A Write that might have been deferred was sent at once. */
void policy_sent(struct policy_send *s, uint64_t now);
/* A thread has found the CQ empty, or armed it; deferred requests are sent. */
void policy_looked(struct policy_send *s);
/* The alarm sends the deferred requests. */
void policy_sent_by_alarm(struct policy_send *s);

/* --- the alarm ------------------------------------------------------------------------------ */

/* The reason to put off the alarm. */
enum policy_use {
	POLICY_WRITE, /* a deferred Write: its delay is at least this, at most twice this */
	POLICY_POLLS, /* a lease of threads that poll */
	/* a lease of threads that wait: the time for setting the alarm is a part of their wait */
	POLICY_WAITS,
};
/*
 * The interval of that: 40 us, or 150 us for leases, or longer where setting the alarm would take
 * too large a part of the time. Setting it takes less than 1 us on most machines, and 20 us on
 * virtual ones whose host does it.
 */
uint64_t policy_pace(enum policy_use use, uint64_t cost_ns);
/*
 * The average time for setting the alarm, after it took `ns` for an alarm that is `ahead_ns` away.
 */
uint64_t policy_cost(uint64_t average_ns, uint64_t ns, uint64_t ahead_ns);
/*
 * A Write is deferred. Does the alarm, due at `due` (0: not set), suit it? It must not be late. It
 * must not be early either, because it would wake the engine in vain, except if another
 * connection's Write waits for it.
 */
bool policy_alarm_fits(uint64_t due, uint64_t now, uint64_t pace, bool others_wait);
/* The check of leases is put off from `before` to `at`. Does the alarm, due at `due`, stay? It is
 * put off, too, if it was set for that check and no Write waits for it. */
bool policy_keeps_alarm(uint64_t due, uint64_t before, uint64_t at, bool write_waits);
/* Has a Write that was deferred at `since` waited long enough? */
bool policy_is_overdue(uint64_t since, uint64_t now, uint64_t pace);
/* Should a thread that polls or waits check the leases now, so that the engine need not do so at
 * `due` (0: no leases)? */
bool policy_is_look_due(uint64_t due, uint64_t now, uint64_t pace);

/* --- which thread receives ------------------------------------------------------------------ */

#define POLICY_LOOP  16u /* polls of an empty CQ are judged in groups; the last reads the time */
#define POLICY_CONNS 8   /* with more connections on a CQ, reports show which of them has bytes */
/*
 * Decide after a number of polls since the CQ was armed, a multiple of POLICY_LOOP; `before` is the
 * time of POLICY_LOOP polls earlier. Do polls follow each other so quickly that only this thread
 * should check for bytes?
 */
bool policy_is_loop(unsigned polls, uint64_t before, uint64_t now);

/* A wait begins: will another one follow soon, as after the last one? */
bool policy_waits_again(uint64_t last, uint64_t now);

/* The history of one connection's leases. A thread may poll until its requests are complete, and
 * then watch its memory for a Write of the peer: a lease would delay this Write. */
struct policy_lease {
	struct policy_news {
		uint64_t written;   /* Writes of the peer that were placed */
		uint64_t completed; /* completed requests and receives */
	} seen;                     /* counts at the thread's last look at the connection */
	bool got;                   /* a request or receive completed in that look */
	unsigned loops;             /* loops of polls without a result, since the count changed */
	unsigned memory; /* does the thread watch its memory between polls? 0: it never did */
};
/* A thread polls or waits, and has not received yet. */
void policy_look_begins(struct policy_lease *l, const struct policy_news *now);
void policy_look_ends(struct policy_lease *l, const struct policy_news *now);
/* Threads poll in a loop, or wait again and again: may a lease begin? */
bool policy_may_lease(struct policy_lease *l);
/* A lease ended because no thread had polled or waited for some time. The two counts show the
 * arrivals meanwhile. */
void policy_lease_unused(struct policy_lease *l, const struct policy_news *before,
			 const struct policy_news *now);

/* Threads that check for a connection's bytes, besides leaders of the engine that wait. */
struct policy_lookers {
	bool leased;      /* threads poll, or wait repeatedly */
	bool waits;       /* the lease belongs to a waiting thread */
	bool spun;        /* a leader of the engine spins */
	unsigned waiting; /* threads that wait for the link themselves now */
};
/* Should the link report bytes, so that they wake the engine? */
bool policy_link_reports(const struct policy_lookers *l);
/* Does a thread check repeatedly, and soon again? */
static inline bool policy_is_polled(const struct policy_lookers *l)
{
	return l->spun || (l->leased && !l->waits);
}
/* A CQ is armed: does the lease end? A thread that waits repeatedly arms once before each wait. */
bool policy_arm_ends_lease(const struct policy_lookers *l, bool armed_before);

/* --- for how long a leader spins ------------------------------------------------------------ */

/* The usual time between the end of work and the next arrival, updated by a gap of `ns`. */
uint64_t policy_gap(uint64_t average_ns, uint64_t ns, uint64_t spin_ns);
/* Should a leader whose work ended at `done` continue to spin, with this usual gap? */
bool policy_spins(uint64_t gap_ns, uint64_t done, uint64_t now, uint64_t spin_ns);

#endif
