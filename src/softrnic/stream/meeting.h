/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting.h -- how a queue pair without rdma_cm and its peer get their one connection
 * (doc/architecture/meeting.md).
 *
 * From the move to RTR on, an end has both names (number and GID). The end with the greater name
 * dials, and the other end awaits the dial. A dial that comes before its queue pair is in RTR is
 * parked. If no dial comes for a second, the awaiting end dials as well: the peer may be behind a
 * firewall.
 *
 * Glossary. A *dial*: a new TCP connection with the MPA request that names both ends; it is "ours",
 * or "inbound". To *park* an inbound dial: keep it without a reply. An *attempt*: our dial or an
 * accepted inbound dial, and the stream that it becomes. A queue pair has at most one.
 *
 * Pure: no I/O, no thread, no clock. Each call is an event, and fills a struct meeting_todo: the
 * owner's tasks, in the order of the bits, and the time of the next meeting_on_time(). Unlike a
 * stream_update, it lists each task once. The owner serialises the calls for one meeting, and
 * performs a todo before the next call. An event of an earlier attempt changes nothing, so the
 * owner may pass on late events.
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
#define MEETING_AWAIT_NS     NSEC_PER_SEC         /* the awaiting end dials after this time */
#define MEETING_RETRY_MIN_NS NSEC_PER_MS          /* first pause between dials; it doubles */
#define MEETING_RETRY_MAX_NS NSEC_PER_SEC         /* greatest pause */
#define MEETING_PATIENCE_NS  (300 * NSEC_PER_SEC) /* after this time without posted requests, */
#define MEETING_SELDOM_NS    (30 * NSEC_PER_SEC)  /* dial only every half minute */
#define MEETING_CONNECT_NS   (10 * NSEC_PER_SEC)  /* limit of a dial's TCP connect */
/* Our dial has no reply, and the peer's own dial has waited this long: accept the peer's dial. Ours
 * has reached another host, through address translation. */
#define MEETING_YIELD_NS (5 * NSEC_PER_SEC)

/*
 * An inbound dial whose request is complete and well-formed. The owner embeds it in its object of
 * the connection. The meeting points to a parked one, so the owner reports the dial's end by
 * meeting_on_parked_end() before it frees the object.
 */
struct meeting_inbound {
	struct meet_data data;
};

/* Both ends, as the move to RTR names them. The owner has checked the families of the GIDs, and
 * that the peer's number contains a port that may be dialed. */
struct meeting_ends {
	struct meet_end own, peer;
	bool uc;
};

/* The owner's tasks, in this order. */
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
	uint32_t attempt;               /* of SELF, ACCEPT, DIAL; the owner states it with events */
	struct meeting_inbound *accept; /* the dial to accept; no longer parked */
	unsigned n_rejects;
	struct meeting_reject rejects[MEETING_PARKED_MAX + 1];
	uint64_t deadline; /* when to call meeting_on_time(); 0: at once, CLOCK_NEVER: not at all */
};

/* The progress of our own dial. */
enum meeting_dial {
	MEETING_DIAL_NONE,       /* no dial is in progress; the next one starts at dial_at */
	MEETING_DIAL_CONNECTING, /* the request is not sent, so the peer cannot accept the dial */
	MEETING_DIAL_SENT,       /* the request is sent, or may be */
};

/* The owner reads `state`, `ends` and `attempt`; only meeting.c uses the rest. */
struct meeting {
	enum meeting_state state;
	enum meeting_dial dial;
	uint32_t attempt;
	struct meeting_ends ends;                           /* valid unless the state is NONE */
	struct meeting_inbound *parked[MEETING_PARKED_MAX]; /* the oldest comes first */
	unsigned n_parked;
	uint64_t since;    /* start of the search for the peer */
	uint64_t dial_at;  /* time of the next dial; the end of a CONNECTING dial */
	uint64_t yield_at; /* CLOCK_NEVER: no dial of the peer waits beside ours */
	uint64_t pause_ns; /* pause before the next dial */
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

/* The queue pair moves to RTR. The state must be NONE. */
void meeting_on_rtr(struct meeting *m, const struct meeting_ends *ends, uint64_t now,
		    struct meeting_todo *todo);
/*
 * The queue pair moves to RTS, or its attributes changed. floor_ns: the minimum for a peer that was
 * never met. A UC queue pair has CLOCK_NEVER for retry_ns. Without this call the retry clock never
 * runs.
 */
void meeting_on_retry_limits(struct meeting *m, uint64_t retry_ns, uint64_t floor_ns, uint64_t now,
			     struct meeting_todo *todo);
/* A send was posted. In MET this changes nothing, so the owner may skip the call. */
void meeting_on_post(struct meeting *m, uint64_t now, struct meeting_todo *todo);

enum meeting_leave {
	MEETING_LEAVE_RESET,   /* parked dials stay: the peer may be ahead of us */
	MEETING_LEAVE_ERR,     /* set by the user, or the queue pair failed; parked dials stay */
	MEETING_LEAVE_DESTROY, /* parked dials are rejected */
};
void meeting_on_leave(struct meeting *m, enum meeting_leave how, struct meeting_todo *todo);

/* --- inbound dials ----------------------------------------------------------------------------- */

/*
 * A dial has arrived for this queue pair. The todo accepts or rejects it; otherwise it is parked.
 */
void meeting_on_inbound(struct meeting *m, struct meeting_inbound *in, uint64_t now,
			struct meeting_todo *todo);
/* A parked dial has ended, or the owner will end it. A dial that is not parked is ignored. */
void meeting_on_parked_end(struct meeting *m, const struct meeting_inbound *in,
			   struct meeting_todo *todo);

/* --- the attempt ------------------------------------------------------------------------------- */

/* TCP of our dial is established. To be called before the request is sent. */
void meeting_on_established(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);
/* Our dial got an accepting reply, which names both ends. To be called before our HELLO is sent:
 * from here on this end chooses no other dial. */
void meeting_on_reply(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);
/* The peer's HELLO has arrived, and ours is sent. Our dial or an accepted one. */
void meeting_on_live(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);

enum meeting_use {
	MEETING_UNUSED, /* no message of either user was begun or received on the stream. So are our
			   dial that was refused, rejected or reset, and a stream that was not LIVE.
			   If requests wait in the queue, call meeting_on_post() afterwards */
	MEETING_IDLE,   /* the stream was used, and this end has no outstanding request */
	MEETING_BUSY,   /* requests were sent and are not acknowledged: FAIL follows */
};
/* The attempt has ended by itself, and the owner has closed it. */
void meeting_on_end(struct meeting *m, uint32_t attempt, enum meeting_use use, uint64_t now,
		    struct meeting_todo *todo);

/* --- time -------------------------------------------------------------------------------------- */

void meeting_on_time(struct meeting *m, uint64_t now, struct meeting_todo *todo);

#endif
