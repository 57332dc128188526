/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.h -- when a Write leaves, which thread receives, for how long a leader looks, and when the
 * engine looks again.
 *
 * Pure: no clock, no lock, no descriptor. The caller has the time, and the lock of what it passes.
 * doc/policy.md has the rules in words, and the benchmark that shows what each of them gains.
 */
#ifndef IO_POLICY_H
#define IO_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* --- when a Write leaves -------------------------------------------------------------------- */

/* What one connection has learned about its Writes, and its Sends, that need no completion. */
struct policy_send {
	uint64_t sent_at;      /* of a Write that did not wait; 0: none since the last post */
	unsigned followed;     /* Writes in a row that the next post followed soon */
	unsigned needed;       /* of these, until a Write waits */
	unsigned sends;        /* Sends in a row, without a look at the CQ between them */
	unsigned sends_needed; /* of these, until a Send waits */
	bool alone;            /* nothing was posted after what waits */
	bool late;             /* the alarm sent such a one, and nothing was posted since */
};

enum policy_write {
	POLICY_SEND,  /* now, with all that waits; policy_sent() follows for a Write */
	POLICY_WAIT,  /* for the next post; the caller sees to an alarm */
	POLICY_JOINS, /* it leaves with what waits */
};

/* What is posted. Writes and Sends are those that no completion was asked for, on a link for which a
 * send costs more than an alarm. */
enum policy_posted {
	POLICY_OTHER,
	POLICY_A_WRITE,
	POLICY_A_SEND, /* only Sends are to be sent */
};

void policy_send_init(struct policy_send *s);
/* Does policy_on_post() need the time? Otherwise it may be 0. */
static inline bool policy_post_needs_time(const struct policy_send *s)
{
	return s->sent_at != 0;
}
/* Something is posted. waiting: a Write or a Send waits already. */
enum policy_write policy_on_post(struct policy_send *s, enum policy_posted posted, bool waiting,
				 uint64_t now);
/* A Write that may wait was sent at once. */
void policy_sent(struct policy_send *s, uint64_t now);
/* A thread has found the CQ empty, or armed it; what waits is sent. */
void policy_looked(struct policy_send *s);
/* The alarm sends what waits. */
void policy_sent_by_alarm(struct policy_send *s);

/* --- the alarm ------------------------------------------------------------------------------ */

/* What the alarm is put off for. */
enum policy_use {
	POLICY_WRITE, /* a Write that waits: for this time at least, for twice this at most */
	POLICY_POLLS, /* from look to look at leases, by threads that poll, */
	POLICY_WAITS, /* and by threads that wait, and have time while they do */
};
/*
 * How often that is done: each 40 us, or each 150 us for leases, or more rarely where the alarm would
 * take too large a part of the time. To set it takes less than 1 us on most machines, and 20 us on
 * virtual ones whose host does it.
 */
uint64_t policy_pace(enum policy_use use, uint64_t cost_ns);
/* The average of what it takes to set the alarm, after it took `ns` for one that is `ahead_ns`
 * away. */
uint64_t policy_cost(uint64_t average_ns, uint64_t ns, uint64_t ahead_ns);
/*
 * A Write begins to wait. Is the alarm, which is due then (0: not set), fit for it? Not too late;
 * and not too early, as it would wake the engine for nothing, unless another connection's Write
 * waits for it.
 */
bool policy_alarm_fits(uint64_t due, uint64_t now, uint64_t pace, bool others_wait);
/* The look at leases is put off from `before` to `at`. Does the alarm, which is due then, stay? It
 * is put off, too, if it was set for that look and no Write waits for it. */
bool policy_keeps_alarm(uint64_t due, uint64_t before, uint64_t at, bool write_waits);
/* Has a Write that waits since then waited for long enough? */
bool policy_is_overdue(uint64_t since, uint64_t now, uint64_t pace);
/* Should a thread that polls or waits look at the leases now, so that the engine need not at `due`
 * (0: there are none)? */
bool policy_is_look_due(uint64_t due, uint64_t now, uint64_t pace);

/* --- which thread receives ------------------------------------------------------------------ */

#define POLICY_LOOP  16u /* polls of an empty CQ are judged together; no other one needs the time */
#define POLICY_CONNS 8   /* with more connections on a CQ, reports show which of them has bytes */
/* After a number of polls that POLICY_LOOP divides, since the CQ was armed; `before` is the time
 * after POLICY_LOOP fewer. Do they follow each other so quickly that the thread had better be the
 * only one that looks for bytes? */
bool policy_is_loop(unsigned polls, uint64_t before, uint64_t now);

/* A wait begins: will there soon be another one, as after the last one? */
bool policy_waits_again(uint64_t last, uint64_t now);

/*
 * What one connection has learned about leases. A thread may poll until its requests are complete,
 * and then look at its memory until the peer has written there: a lease would delay that Write.
 */
struct policy_lease {
	struct policy_news {
		uint64_t written;   /* Writes of the peer that were placed */
		uint64_t completed; /* requests and receives */
	} seen;                     /* at the thread's last look at the connection */
	bool got;                   /* something completed in that look */
	unsigned loops;             /* of polls that found nothing, since the count changed */
	unsigned memory; /* does the thread look at its memory between its polls? 0: it never did */
};
/* A thread polls or waits, and has not received yet. */
void policy_look_begins(struct policy_lease *l, const struct policy_news *now);
void policy_look_ends(struct policy_lease *l, const struct policy_news *now);
/* Threads poll in a loop, or wait again and again: may a lease begin? */
bool policy_may_lease(struct policy_lease *l);
/* A lease ended, as no thread had polled or waited for some time. What had come since? */
void policy_lease_unused(struct policy_lease *l, const struct policy_news *before,
			 const struct policy_news *now);

/* Threads that look for a connection's bytes beside the engine's leaders that wait. */
struct policy_lookers {
	bool leased;      /* threads poll, or wait again and again */
	bool waits;       /* the lease is of a thread that waits */
	bool spun;        /* a leader of the engine spins */
	unsigned waiting; /* threads that wait for the link by themselves at the moment */
};
/* Is the link to report bytes, so that the engine is woken for them? */
bool policy_link_reports(const struct policy_lookers *l);
/* Does some thread look again and again, and soon? */
static inline bool policy_is_polled(const struct policy_lookers *l)
{
	return l->spun || (l->leased && !l->waits);
}
/* A CQ is armed: does the lease end? A thread that waits again and again arms once before each
 * wait. */
bool policy_arm_ends_lease(const struct policy_lookers *l, bool armed_before);

/* --- for how long a leader spins ------------------------------------------------------------ */

/* What is mostly between the end of the work and the next arrival, after a gap of `ns`. */
uint64_t policy_gap(uint64_t average_ns, uint64_t ns, uint64_t spin_ns);
/* Does a leader whose work ended at `done` go on looking, where arrivals have such gaps? */
bool policy_spins(uint64_t gap_ns, uint64_t done, uint64_t now, uint64_t spin_ns);

#endif
