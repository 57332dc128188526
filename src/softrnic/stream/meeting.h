/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting.h -- how a queue pair without rdma_cm and its peer get the one connection between them
 * (doc/architecture/meeting.md).
 *
 * Each end knows both names (number and GID) from its move to RTR on. The end with the greater name
 * dials, the other one awaits the dial. A dial that comes before its queue pair is in RTR is parked.
 * If no dial comes for a second, the awaiting end dials as well: the peer may be behind a firewall.
 *
 * Glossary. A *dial*: a TCP connection on the way, with the MPA request that names both ends; it is
 * "ours", or "inbound". To *park* an inbound dial: keep it without a reply. An *attempt*: our dial,
 * or an inbound one that was accepted, and the stream that it becomes. A queue pair has at most one.
 *
 * Pure: no I/O, no thread, no clock. Each call is an event, and fills a struct meeting_todo: what the
 * owner has to do now, in the order of the bits, and when to call meeting_on_time(). Unlike a
 * stream_update it asks for each thing once. The owner serialises the calls for one meeting, and
 * performs a todo before the next call. An event of an attempt that is not the present one changes
 * nothing, so the owner need not hold back late ones.
 */
#ifndef STREAM_MEETING_H
#define STREAM_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "softrnic/proto/meet.h"

/* States, with those of the queue pair; meeting_state_str() names them. */
/* clang-format off */
#define MEETING_STATES(X)                                                                          \
	X(NONE)     /* RESET, INIT, ERR: it has no peer */                                         \
	X(DIALING)  /* RTR, RTS: our name is the greater one, so we dial */                        \
	X(AWAITING) /* RTR, RTS: the peer dials, and after a second we do, too */                  \
	X(GREETING) /* RTR, RTS: one dial is accepted; MPA's reply and HELLO are under way */      \
	X(MET)      /* RTR, RTS, SQD, SQE: the stream is live */                                   \
	X(LOST)     /* RTR, RTS: the stream was used and has ended; only a reset leads to another */
/* clang-format on */
enum meeting_state {
#define X(name) MEETING_##name,
	MEETING_STATES(X)
#undef X
};

#define MEETING_PARKED_MAX   4
#define MEETING_AWAIT_NS     NSEC_PER_SEC         /* the end that awaits dials after this */
#define MEETING_RETRY_MIN_NS NSEC_PER_MS          /* between two dials: this, doubled each time */
#define MEETING_RETRY_MAX_NS NSEC_PER_SEC         /* up to this */
#define MEETING_PATIENCE_NS  (300 * NSEC_PER_SEC) /* after this, if nothing is posted: */
#define MEETING_SELDOM_NS    (30 * NSEC_PER_SEC)  /* a dial each half minute */
#define MEETING_CONNECT_NS   (10 * NSEC_PER_SEC) /* a dial whose TCP connection takes longer ends */
/* Our dial got no reply, and the peer's own dial waits beside it for so long: take the peer's. Ours
 * has reached something else, on a way through address translation. */
#define MEETING_YIELD_NS (5 * NSEC_PER_SEC)

/*
 * An inbound dial whose request is complete and well-formed: embedded in the owner's object for the
 * connection. The meeting has a pointer to it while it is parked, so the owner reports its end by
 * meeting_on_parked_end() first.
 */
struct meeting_inbound {
	struct meet_data data;
};

/* What the two ends are, as the move to RTR states it. The owner has checked the GIDs' families and
 * that the peer's number is that of a port that may be dialed. */
struct meeting_ends {
	struct meet_end own, peer;
	bool uc;
};

/* What to do, in this order. */
enum {
	MEETING_DO_CLOSE = 1, /* end the present attempt by a reset. The queue pair keeps its posted
				  requests and receives for the next one, unless the caller itself
				  resets, fails or destroys the queue pair */
	MEETING_DO_REJECT = 2, /* answer rejects[].inbound with rejects[].reason, and forget it */
	MEETING_DO_FAIL = 4, /* the oldest work request ends with RETRY_EXC_ERR, and the queue pair
				  moves to ERR. The meeting is in NONE by then */
	MEETING_DO_SELF = 8, /* join the queue pair to itself, then meeting_on_live() */
	MEETING_DO_ACCEPT = 16, /* the queue pair takes the link of `accept` and its request over */
	MEETING_DO_DIAL = 32,   /* dial ends.peer; ends.own is the sender's name */
};

struct meeting_reject {
	struct meeting_inbound *inbound;
	enum meet_reason
		reason; /* MEET_NOT_PEER deserves a NOTICE: two numbers are often swapped */
};

struct meeting_todo {
	unsigned todo;
	uint32_t attempt;               /* of SELF, ACCEPT, DIAL: to be stated with its events */
	struct meeting_inbound *accept; /* not parked any more */
	unsigned n_rejects;
	struct meeting_reject rejects[MEETING_PARKED_MAX + 1];
	uint64_t deadline; /* when to call meeting_on_time(); 0: at once, CLOCK_NEVER: not at all */
};

/* How far our own dial is. */
enum meeting_dial {
	MEETING_DIAL_NONE,       /* none is under way; the next one is at dial_at */
	MEETING_DIAL_CONNECTING, /* no request is sent yet, so the peer cannot accept it */
	MEETING_DIAL_SENT,       /* it is, or may be */
};

/* The owner reads `state`, `ends` and `attempt`; the rest is meeting.c's. */
struct meeting {
	enum meeting_state state;
	enum meeting_dial dial;
	uint32_t attempt;
	struct meeting_ends ends;                           /* unless NONE */
	struct meeting_inbound *parked[MEETING_PARKED_MAX]; /* oldest first */
	unsigned n_parked;
	uint64_t since;    /* when it began to look for its peer */
	uint64_t dial_at;  /* the next dial; while one is CONNECTING, its end */
	uint64_t yield_at; /* CLOCK_NEVER: no dial of the peer waits beside ours */
	uint64_t pause_ns; /* before the next dial */
	uint64_t retry_at; /* the retry clock; CLOCK_NEVER: it does not run */
	uint64_t retry_ns, retry_floor_ns;
	bool posted; /* work requests wait for a stream */
};

void meeting_init(struct meeting *m);
const char *meeting_state_str(enum meeting_state state);

/* T of a retry clock: InfiniBand's 4.096 us * 2^timeout * (retry_cnt + 1); CLOCK_NEVER for
 * timeout 0. */
uint64_t meeting_retry_ns(uint8_t timeout, uint8_t retry_cnt);

/* --- what the user does ------------------------------------------------------------------------ */

/* To RTR, in NONE. */
void meeting_on_rtr(struct meeting *m, const struct meeting_ends *ends, uint64_t now,
		    struct meeting_todo *todo);
/* To RTS, or the attributes changed. floor_ns: the least for a peer that was never met. A UC queue
 * pair has CLOCK_NEVER for retry_ns. Without this call the retry clock never runs. */
void meeting_on_retry_limits(struct meeting *m, uint64_t retry_ns, uint64_t floor_ns, uint64_t now,
			     struct meeting_todo *todo);
/* A send was posted. Nothing changes in MET, so the owner need not call it there. */
void meeting_on_post(struct meeting *m, uint64_t now, struct meeting_todo *todo);

enum meeting_leave {
	MEETING_LEAVE_RESET,   /* parked dials stay: the peer may be ahead of us */
	MEETING_LEAVE_ERR,     /* by the user, or the queue pair failed; likewise */
	MEETING_LEAVE_DESTROY, /* parked dials are rejected */
};
void meeting_on_leave(struct meeting *m, enum meeting_leave how, struct meeting_todo *todo);

/* --- inbound dials ----------------------------------------------------------------------------- */

/* One has come for this queue pair. It is accepted or rejected by the todo, or else parked. */
void meeting_on_inbound(struct meeting *m, struct meeting_inbound *in, uint64_t now,
			struct meeting_todo *todo);
/* One that is parked has ended, or the owner will end it. One that is not parked is ignored. */
void meeting_on_parked_end(struct meeting *m, const struct meeting_inbound *in,
			   struct meeting_todo *todo);

/* --- the attempt ------------------------------------------------------------------------------- */

/* Ours: TCP is established. To be called before the request is sent. */
void meeting_on_established(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);
/* Ours: an accepting reply has come, and it names both ends. To be called before our HELLO leaves:
 * from here on this end does not choose another dial. */
void meeting_on_reply(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);
/* Either: the peer's HELLO is here, and ours is on its way. */
void meeting_on_live(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);

enum meeting_use {
	MEETING_UNUSED, /* no message of either user was begun or received on the stream. So are our
			   dial that was refused, rejected or reset, and a stream that was not LIVE.
			   If requests wait in the queue, call meeting_on_post() afterwards */
	MEETING_IDLE,   /* there were some, and nothing of this end is outstanding */
	MEETING_BUSY,   /* work requests were sent that are not acknowledged: FAIL follows */
};
/* It has ended by itself, and the owner has closed it. */
void meeting_on_end(struct meeting *m, uint32_t attempt, enum meeting_use use, uint64_t now,
		    struct meeting_todo *todo);

/* --- time -------------------------------------------------------------------------------------- */

void meeting_on_time(struct meeting *m, uint64_t now, struct meeting_todo *todo);

#endif
