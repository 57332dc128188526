/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * policy.h -- decides when a Write is sent, which thread receives, how long a leader spins, and
 * when the engine checks again.
 *
 * Pure: no clock, no lock, no descriptor. The caller passes the time, and holds the lock of the
 * objects that it passes to these functions. doc/policy.md has the rules in words, and the
 * benchmark that shows the gain of each.
 */
#ifndef IO_POLICY_H
#define IO_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* --- when a Write is sent ------------------------------------------------------------------- */

/* The history of one connection's Writes and Sends without a completion. */
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

/* The kinds of posted requests. A Write or a Send without a completion counts as such only on a
 * link where a send costs more than an alarm. */
enum policy_posted {
	POLICY_OTHER,
	POLICY_A_WRITE,
	POLICY_A_SEND, /* a Send, and all other unsent requests are Sends, too */
};

void policy_send_init(struct policy_send *s);
/* Does policy_on_post() need the time? Otherwise `now` may be 0. */
static inline bool policy_post_needs_time(const struct policy_send *s)
{
	return s->sent_at != 0;
}
/* Requests were posted. `waiting` is true if a Write or a Send is already deferred. */
enum policy_write policy_on_post(struct policy_send *s, enum policy_posted posted, bool waiting,
				 uint64_t now);
/* A Write was sent immediately, although it could have been deferred. */
void policy_sent(struct policy_send *s, uint64_t now);
/* A thread has found the CQ empty or has armed it. All deferred requests are sent. */
void policy_looked(struct policy_send *s);
/* The alarm has expired and sends the deferred requests. */
void policy_sent_by_alarm(struct policy_send *s);

/* --- the alarm ------------------------------------------------------------------------------ */

/* The reason for which the alarm is put off. */
enum policy_use {
	/* a deferred Write; its delay is at least the interval, at most twice the interval */
	POLICY_WRITE,
	POLICY_POLLS, /* a lease of threads that poll */
	/* a lease of threads that wait: the time for setting the alarm is a part of each wait */
	POLICY_WAITS,
};
/*
 * The interval for this reason: 40 us, or 150 us for leases, or longer if setting
 * the alarm would take too large a part of the time. Setting it takes less than 1 us on most
 * machines, and 20 us on virtual machines whose host emulates the timer.
 */
uint64_t policy_pace(enum policy_use use, uint64_t cost_ns);
/*
 * Returns the new average time for setting the alarm, after setting it to `ahead_ns` from now took
 * `ns`.
 */
uint64_t policy_cost(uint64_t average_ns, uint64_t ns, uint64_t ahead_ns);
/*
 * A Write is deferred. Is the alarm's present time `due` (0: not set) suitable for it? The alarm
 * must not be late. It must not be early either, because it would wake the engine in vain, unless
 * another connection's Write waits for the alarm.
 */
bool policy_alarm_fits(uint64_t due, uint64_t now, uint64_t pace, bool others_wait);
/* The next check of leases is moved from `before` to `at`. Does the alarm keep its time `due`? If
 * the alarm was set for this check and no Write waits for it, the alarm is moved as well. */
bool policy_keeps_alarm(uint64_t due, uint64_t before, uint64_t at, bool write_waits);
/* Has a Write that was deferred at the time `since` waited long enough? */
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

/* A thread begins a wait. Its last wait began at `last`. Is it likely that yet another wait follows
 * soon? */
bool policy_waits_again(uint64_t last, uint64_t now);

/* The history of one connection's leases. A lease means that only a thread of the application
 * checks for bytes. A thread may poll until its requests are complete, and then read its memory
 * until a Write of the peer arrives; a lease would delay this Write. */
struct policy_lease {
	struct policy_news {
		uint64_t written;   /* number of the peer's Writes that were placed */
		uint64_t completed; /* number of completed requests and receives */
	} seen;                     /* counts when the thread last checked the connection */
	bool got;                   /* a request or receive completed in that check */
	/* number of loops of polls without a result since `completed` changed */
	unsigned loops;
	/* the greater, the more likely the thread polls its memory between polls of the CQ; 0: it
	 * never did */
	unsigned memory;
};
/* Called before and after the receive of a thread that polls or waits. */
void policy_look_begins(struct policy_lease *l, const struct policy_news *now);
void policy_look_ends(struct policy_lease *l, const struct policy_news *now);
/* Threads poll in a loop, or wait repeatedly. May a lease begin? */
bool policy_may_lease(struct policy_lease *l);
/* A lease has ended because no thread polled or waited for some time. `before` and `now` show what
 * arrived meanwhile. */
void policy_lease_unused(struct policy_lease *l, const struct policy_news *before,
			 const struct policy_news *now);

/* Does the thread poll its memory, so that it waits for a Write of the peer? */
bool policy_watches_memory(const struct policy_lease *l);

/*
 * A call of the application finds that another thread holds the connection's lock. It tries for
 * this time before it sleeps: the holder receives once and sends once, and a send takes some 15 us
 * if it wakes a thread on another virtual CPU.
 */
#define POLICY_POST_NS 20000u

/* Which threads check for a connection's bytes, apart from leaders of the engine that sleep. */
struct policy_lookers {
	bool leased;      /* threads poll, or wait repeatedly */
	bool waits;       /* the lease belongs to a waiting thread */
	bool spun;        /* a leader of the engine spins */
	unsigned waiting; /* number of threads that wait for the link themselves now */
};
/* Should the link report bytes, so that their arrival wakes the engine? */
bool policy_link_reports(const struct policy_lookers *l);
/* Does a thread check for bytes repeatedly, and will it soon check again? */
static inline bool policy_is_polled(const struct policy_lookers *l)
{
	return l->spun || (l->leased && !l->waits);
}
/* A CQ is armed. Does the lease end? It does not if a waiting thread arms the CQ once before each
 * wait. */
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
/* The leader has written back. A spinning leader would have to give up its loop at each write-back,
 * so it does not spin for some time. */
void policy_wrote_back(struct policy_spare *s, uint64_t now);
/* A spin has ended. `found` is true if it found bytes in time. */
void policy_spun(struct policy_spare *s, uint64_t now, bool found);

#endif
