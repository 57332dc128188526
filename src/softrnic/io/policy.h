/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.h -- decides when a Write is sent, which thread receives, how long a leader spins, and
 * when the engine checks again.
 *
 * Pure: no clock, no lock, no descriptor. The caller passes the time, and holds the lock of the
 * objects that it passes to these functions. doc/policy.md contains the rules in words, and for
 * each rule the benchmark that shows its gain.
 */
#ifndef IO_POLICY_H
#define IO_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* --- when a Write is sent ------------------------------------------------------------------- */

/* The history of one connection's Writes and Sends that request no completion. */
struct policy_send {
	/* time at which a Write was sent without being deferred; 0: none since the last post */
	uint64_t sent_at;
	/* number of Writes in a row that were each followed by a post soon */
	unsigned followed;
	/* after this number of followed Writes, the next Write is deferred */
	unsigned needed;
	unsigned sends;        /* number of Sends in a row without a poll of the CQ between them */
	unsigned sends_needed; /* after this number of Sends, the next Send is deferred */
	bool alone;            /* no post has followed the deferred request yet */
	/* the alarm sent a Write that had waited alone, and no post has followed since */
	bool late;
};

enum policy_write {
	/* send the request now, with all deferred ones; if it is a Write, call policy_sent()
	 * afterwards */
	POLICY_SEND,
	POLICY_WAIT,  /* defer the request; the caller sets an alarm */
	POLICY_JOINS, /* defer the request together with the ones already deferred */
};

/*
 * The kinds of posted requests. A Write or a Send that requests no completion is of its own kind
 * only on a link where a send costs more than an alarm; elsewhere it is of the kind POLICY_OTHER.
 */
enum policy_posted {
	POLICY_OTHER,
	POLICY_A_WRITE,
	POLICY_A_SEND, /* a Send, and all other unsent requests are Sends, too */
};

void policy_send_init(struct policy_send *s);
/* Does policy_on_post() need the present time as `now`? If not, `now` may be 0. */
static inline bool policy_post_needs_time(const struct policy_send *s)
{
	return s->sent_at != 0;
}
/* Decides about requests when they are posted. `waiting` is true if a Write or a Send is already
 * deferred. */
enum policy_write policy_on_post(struct policy_send *s, enum policy_posted posted, bool waiting,
				 uint64_t now);
/* Called at the time `now`, after a request of the kind POLICY_A_WRITE was sent in its own post.
 * The next post then judges whether deferring this request would have saved a send. */
void policy_sent(struct policy_send *s, uint64_t now);
/*
 * Called when a thread finds the CQ empty or arms it. The caller then sends all deferred requests.
 */
void policy_looked(struct policy_send *s);
/* Called when deferred requests are sent because the alarm has expired, and when an Ack was
 * deferred although no post followed. */
void policy_sent_by_alarm(struct policy_send *s);
/* A thread arms its CQ or waits before it posts, which sends the deferred Ack alone. The thread was
 * not delayed, so its next post shows nothing new. */
void policy_in_vain(struct policy_send *s);

/* --- the alarm ------------------------------------------------------------------------------ */

/* The reason for which the alarm is set, or moved to a later time. */
enum policy_use {
	/* a deferred Write; its delay is at least the interval, at most twice the interval */
	POLICY_WRITE,
	POLICY_POLLS, /* a lease of threads that poll */
	/* a lease of threads that wait: setting the alarm may take up to 1/10 of the time instead
	 * of 1/32, because such a thread would otherwise only sleep */
	POLICY_WAITS,
};
/*
 * Returns the interval for this reason: 40 us, or 150 us for leases. The interval is longer if
 * setting the alarm (`cost_ns`) would otherwise take more than 1/32 of the time (POLICY_WAITS:
 * 1/10). Setting it takes less than 1 us on most machines, and about 16 us on virtual machines
 * whose host emulates the timer.
 */
uint64_t policy_pace(enum policy_use use, uint64_t cost_ns);
/*
 * Returns the new average time for setting the alarm, at most 16 us, after setting it to `ahead_ns`
 * from now took `ns`.
 */
uint64_t policy_cost(uint64_t average_ns, uint64_t ns, uint64_t ahead_ns);
/*
 * Called when a Write is deferred: is the alarm's present time `due` (0: not set) suitable for this
 * Write? The alarm must expire at most 2 * pace from now. It must not expire in less than `pace`
 * either, because it would wake the engine in vain, unless another connection's Write waits for the
 * alarm.
 */
bool policy_alarm_fits(uint64_t due, uint64_t now, uint64_t pace, bool others_wait);
/*
 * Called when the next check of leases is moved from `before` to `at`: does the alarm keep its time
 * `due`? If the alarm was set for this check and no Write waits for it, the alarm is moved as well.
 */
bool policy_keeps_alarm(uint64_t due, uint64_t before, uint64_t at, bool write_waits);
/* Is the delay of a Write that was deferred at the time `since` over? */
bool policy_is_overdue(uint64_t since, uint64_t now, uint64_t pace);
/* Should a thread that polls or waits check the leases now? The engine then need not check them at
 * the time `due` (0: there are no leases). */
bool policy_is_look_due(uint64_t due, uint64_t now, uint64_t pace);

/* --- which thread receives ------------------------------------------------------------------ */

/*
 * polls of an empty CQ are judged in groups of this size; the last poll of a group reads the clock
 */
#define POLICY_LOOP 16u
/* if a CQ has more connections than this, the poller's reports show which of them have bytes */
#define POLICY_CONNS 8
/*
 * Do polls follow each other so quickly that only this thread should check for bytes? `polls` is
 * the number of polls since the CQ was armed, a multiple of POLICY_LOOP. `before` is the time of
 * the poll POLICY_LOOP polls ago.
 */
bool policy_is_loop(unsigned polls, uint64_t before, uint64_t now);

/* Called when a thread begins a wait; its last wait began at `last`. Will another wait probably
 * follow soon? */
bool policy_waits_again(uint64_t last, uint64_t now);

/* The history of one connection's leases. A lease means that only a thread of the application
 * checks for bytes. A thread may poll until its requests are complete, and then read its memory
 * until a Write of the peer arrives; a lease would delay this Write. */
struct policy_lease {
	struct policy_news {
		uint64_t written;   /* number of the peer's Writes that were placed */
		uint64_t completed; /* number of completed requests and receives */
	} seen;                     /* counts when the thread last checked the connection */
	bool got;                   /* a request or receive completed in the thread's last check */
	/* how many loops of polls found nothing after the last change of `completed`; also set
	 * back to 0 at MEMORY_LOOPS */
	unsigned loops;
	/* the greater, the more likely the thread polls its memory between polls of the CQ; 0: it
	 * never did */
	unsigned memory;
};
/* Called before and after each receive from the link by a thread that polls or waits. */
void policy_look_begins(struct policy_lease *l, const struct policy_news *now);
void policy_look_ends(struct policy_lease *l, const struct policy_news *now);
/* Called when threads poll in a loop, or wait repeatedly: is a lease allowed to begin? */
bool policy_may_lease(struct policy_lease *l);
/* Called after a lease has ended because no thread polled or waited for some time. `before` are the
 * counts at the end of the lease, and `now` those after the waiting bytes were processed. */
void policy_lease_unused(struct policy_lease *l, const struct policy_news *before,
			 const struct policy_news *now);

/* Does the thread poll its memory, so that it waits for a Write of the peer? */
bool policy_watches_memory(const struct policy_lease *l);

/*
 * Time for which a call of the application tries to take the connection's lock before it sleeps.
 * Another thread usually holds the lock for one receive and one send, and a send takes about 15 us
 * if it wakes a thread on another virtual CPU.
 */
#define POLICY_POST_NS 20000u

/* Which threads check for a connection's bytes, apart from leaders of the engine that sleep. */
struct policy_lookers {
	bool leased;      /* threads poll, or wait repeatedly */
	bool waits;       /* the lease belongs to a waiting thread */
	bool spun;        /* a leader of the engine spins, and checks this connection */
	unsigned waiting; /* number of threads that wait for the link themselves now */
};
/* Should the link report bytes, so that their arrival wakes the engine? */
bool policy_link_reports(const struct policy_lookers *l);
/* Does a thread check for bytes repeatedly, and will it soon check again? */
static inline bool policy_is_polled(const struct policy_lookers *l)
{
	return l->spun || (l->leased && !l->waits);
}
/* Called when a CQ is armed: does the lease end? It does not end if a waiting thread arms the CQ
 * once before each wait. `armed_before`: the same CQ was armed since the last wait. */
bool policy_arm_ends_lease(const struct policy_lookers *l, bool armed_before);

/* --- for how long a leader spins ------------------------------------------------------------ */

/* Returns the new usual time between the end of work and the next arrival, after a gap of `ns`. */
uint64_t policy_gap(uint64_t average_ns, uint64_t ns, uint64_t spin_ns);
/* Should a leader continue to spin? Its work ended at `done`, and the usual gap is gap_ns. */
bool policy_spins(uint64_t gap_ns, uint64_t done, uint64_t now, uint64_t spin_ns);

/*
 * On a machine with two CPUs a leader spins only on a CPU that seems to be spare: the program's
 * other threads sleep, and spins find bytes in time. A spin that finds no bytes may have taken
 * the CPU from the peer.
 */
struct policy_spare {
	uint64_t checked_at; /* time of the last check of the CPU time */
	uint64_t others_ns;  /* CPU time that the program's other threads had used at checked_at */
	bool spare;          /* the other threads slept for most of the time before checked_at */
	uint64_t not_before; /* no spin begins before this time */
	uint64_t pause_ns;   /* length of the pause after the next spin in vain */
	unsigned found;      /* spins in a row that found bytes in time */
};
/* Should the caller read the CPU time, and call policy_spare_check()? */
bool policy_spare_is_due(const struct policy_spare *s, uint64_t now);
void policy_spare_check(struct policy_spare *s, uint64_t now, uint64_t others_ns);
bool policy_is_spare(const struct policy_spare *s, uint64_t now);
/* Called after the leader has written back: do not spin for some time, because a spinning leader
 * would have to give up its loop at each write-back. */
void policy_wrote_back(struct policy_spare *s, uint64_t now);
/* Called when a spin ends. `found` is true if the spin found bytes in time. */
void policy_spun(struct policy_spare *s, uint64_t now, bool found);

#endif
