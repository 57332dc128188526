/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting.h -- decides how a queue pair without rdma_cm and its peer establish exactly one
 * connection (doc/architecture/meeting.md).
 *
 * With the move to RTR the user states the names (queue pair number and GID) of both ends. The end
 * with the greater name dials, and the other end awaits the dial. A dial that comes before its
 * queue pair is in RTR is parked. If no dial comes for a second, the awaiting end dials as well:
 * the peer may be behind a firewall.
 *
 * Glossary. A *dial*: a new TCP connection with an MPA request that names both ends. "Our" dial is
 * made by this end, an "inbound" dial by the peer. To *park* an inbound dial: keep it without a
 * reply. An *attempt*: our dial or an accepted inbound dial, and afterwards the stream on this TCP
 * connection. A queue pair has at most one attempt at a time.
 *
 * Pure: no I/O, no thread, no clock. Each call is an event, and fills a struct meeting_todo: the
 * owner's tasks, in the order of the bits, and the time of the next meeting_on_time(). A todo lists
 * each task only once, unlike a stream_update, which lists a task until it is done. The owner
 * serialises the calls for one meeting, and performs a todo before the next call. An event of an
 * earlier attempt changes nothing, so the owner may pass on late events.
 */
#ifndef STREAM_MEETING_H
#define STREAM_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "softrnic/proto/meet.h"

/* States of the meeting; each comment lists the queue pair's states that it occurs in.
 * meeting_state_str() returns the names. */
/* clang-format off */
#define MEETING_STATES(X)                                                                          \
	X(NONE)     /* RESET, INIT, ERR: there is no peer */                                       \
	X(DIALING)  /* RTR, RTS: this end has the greater name and dials */                        \
	X(AWAITING) /* RTR, RTS: the peer dials; after a second both do */                         \
	X(GREETING) /* RTR, RTS: one dial is accepted; MPA's reply and HELLO are under way */      \
	X(MET)      /* RTR, RTS, SQD, SQE: the stream is in full operation */                      \
	X(LOST)     /* RTR, RTS: a used stream has ended; a new one needs a move to RESET */
/* clang-format on */
enum meeting_state {
#define X(name) MEETING_##name,
	MEETING_STATES(X)
#undef X
};

#define MEETING_PARKED_MAX 4
#define MEETING_AWAIT_NS   NSEC_PER_SEC /* the awaiting end dials after this time */
/* first pause between dials; each pause is twice as long as the last */
#define MEETING_RETRY_MIN_NS NSEC_PER_MS
#define MEETING_RETRY_MAX_NS NSEC_PER_SEC /* greatest pause */
/* after this time without posted requests, dial only every MEETING_SELDOM_NS */
#define MEETING_PATIENCE_NS (300 * NSEC_PER_SEC)
/* pause between dials after MEETING_PATIENCE_NS */
#define MEETING_SELDOM_NS  (30 * NSEC_PER_SEC)
#define MEETING_CONNECT_NS (10 * NSEC_PER_SEC) /* time limit of a dial's TCP connect */
/* After this time accept the peer's dial although our dial is sent. If our dial still has no reply,
 * it has reached another host, for example through address translation. */
#define MEETING_YIELD_NS (5 * NSEC_PER_SEC)

/*
 * An inbound dial whose request is complete and well-formed. The owner embeds this struct in its
 * object of the connection. While the dial is parked, the meeting points to the struct, so the
 * owner must report the dial's end by meeting_on_parked_end() before it frees the object.
 */
struct meeting_inbound {
	struct meet_data data;
};

/* The names of both ends, as the user states them with the move to RTR. The owner has checked the
 * address families of the GIDs, and that the peer's number contains a port that may be dialed. */
struct meeting_ends {
	struct meet_end own, peer;
	bool uc;
};

/* The owner's tasks, in this order. */
enum {
	/*
	 * end the present attempt by a reset. The queue pair keeps its posted requests and receives
	 * for the next attempt, unless the caller itself resets, fails or destroys the queue pair
	 */
	MEETING_DO_CLOSE = 1,
	/* answer each rejects[].inbound with its rejects[].reason, and forget these dials */
	MEETING_DO_REJECT = 2,
	/* end the oldest work request with RETRY_EXC_ERR, and move the queue pair to ERR. The
	 * meeting is already in state NONE */
	MEETING_DO_FAIL = 4,
	MEETING_DO_SELF = 8, /* connect the queue pair to itself, then call meeting_on_live() */
	/* give the queue pair the link of the inbound dial `accept`, and the request in it */
	MEETING_DO_ACCEPT = 16,
	MEETING_DO_DIAL = 32, /* dial ends.peer; the request names ends.own as its sender */
};

struct meeting_reject {
	struct meeting_inbound *inbound;
	/* log a NOTICE for MEET_NOT_PEER, because users often swap two numbers */
	enum meet_reason reason;
};

struct meeting_todo {
	unsigned todo;
	/* number of the attempt that SELF, ACCEPT or DIAL begins; the owner passes it back with
	 * events */
	uint32_t attempt;
	struct meeting_inbound *accept; /* the inbound dial to accept; it is no longer parked */
	unsigned n_rejects;
	struct meeting_reject rejects[MEETING_PARKED_MAX + 1];
	/* time at which to call meeting_on_time(); 0: immediately, CLOCK_NEVER: not needed */
	uint64_t deadline;
};

/* The progress of our own dial. */
enum meeting_dial {
	MEETING_DIAL_NONE, /* no dial is in progress; the next dial starts at dial_at */
	/* the request is not sent yet, so the peer cannot accept the dial */
	MEETING_DIAL_CONNECTING,
	MEETING_DIAL_SENT, /* the request is sent, or may be partly sent */
};

/* The owner reads `state`, `ends` and `attempt`. Only meeting.c uses the other members. */
struct meeting {
	enum meeting_state state;
	enum meeting_dial dial;
	uint32_t attempt;
	struct meeting_ends ends;                           /* valid unless the state is NONE */
	struct meeting_inbound *parked[MEETING_PARKED_MAX]; /* the oldest comes first */
	unsigned n_parked;
	uint64_t since;   /* start of the search for the peer */
	uint64_t dial_at; /* time of the next dial; while CONNECTING: the time limit of the dial */
	/* time at which to accept the peer's dial instead of ours; CLOCK_NEVER: no dial of the peer
	 * waits */
	uint64_t yield_at;
	uint64_t pause_ns; /* pause before the next dial */
	/* time at which the retry limit ends; CLOCK_NEVER: the retry clock is stopped */
	uint64_t retry_at;
	uint64_t retry_ns, retry_floor_ns;
	bool posted; /* work requests wait for a stream */
};

void meeting_init(struct meeting *m);
const char *meeting_state_str(enum meeting_state state);

/* Length of the retry limit in ns: InfiniBand's 4.096 us * 2^timeout * (retry_cnt + 1), or
 * CLOCK_NEVER for timeout 0. */
uint64_t meeting_retry_ns(uint8_t timeout, uint8_t retry_cnt);

/* --- what the user does ------------------------------------------------------------------------ */

/* Called when the queue pair moves to RTR. The state must be NONE. */
void meeting_on_rtr(struct meeting *m, const struct meeting_ends *ends, uint64_t now,
		    struct meeting_todo *todo);
/*
 * Called when the queue pair moves to RTS, or when its retry attributes change. floor_ns is the
 * minimum of the retry limit for a peer to which this queue pair was never connected. For a UC
 * queue pair retry_ns is CLOCK_NEVER. Until this call the retry clock does not run.
 */
void meeting_on_retry_limits(struct meeting *m, uint64_t retry_ns, uint64_t floor_ns, uint64_t now,
			     struct meeting_todo *todo);
/*
 * Called when a send was posted. In state MET the call changes nothing, so the owner may omit it.
 */
void meeting_on_post(struct meeting *m, uint64_t now, struct meeting_todo *todo);

enum meeting_leave {
	/* parked dials stay: the peer may have moved to RTR before this end */
	MEETING_LEAVE_RESET,
	/* the user moved the queue pair to ERR, or it failed; parked dials stay */
	MEETING_LEAVE_ERR,
	MEETING_LEAVE_DESTROY, /* parked dials are rejected */
};
void meeting_on_leave(struct meeting *m, enum meeting_leave how, struct meeting_todo *todo);

/* --- inbound dials ----------------------------------------------------------------------------- */

/*
 * Called when a dial for this queue pair has arrived. The todo accepts or rejects it; otherwise the
 * dial is parked.
 */
void meeting_on_inbound(struct meeting *m, struct meeting_inbound *in, uint64_t now,
			struct meeting_todo *todo);
/* Called when a parked dial has ended, or before the owner ends it. A dial that is not parked is
 * ignored. */
void meeting_on_parked_end(struct meeting *m, const struct meeting_inbound *in,
			   struct meeting_todo *todo);

/* --- the attempt ------------------------------------------------------------------------------- */

/* Called when the TCP connection of our dial is established, before the request is sent. */
void meeting_on_established(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);
/* Called when our dial got an accepting reply, which names both ends, and before our HELLO is sent.
 * After this call this end accepts no other dial. */
void meeting_on_reply(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);
/* Called when the peer's HELLO has arrived and ours is sent. The attempt is our dial or an accepted
 * dial. */
void meeting_on_live(struct meeting *m, uint32_t attempt, struct meeting_todo *todo);

enum meeting_use {
	/* no message of either user was begun or received on the stream. This includes our dial if
	 * it was refused, rejected or reset, and a stream that did not reach full operation. If
	 * requests wait in the queue, call meeting_on_post() afterwards */
	MEETING_UNUSED,
	/* the stream was used. Requests without an Ack are still posted: if there are any, call
	 * meeting_on_post() afterwards */
	MEETING_USED,
	MEETING_FAILED, /* the queue pair has failed; the todo contains MEETING_DO_FAIL */
};
/* Called when the attempt has ended although this end did not close it. The owner has closed the
 * link before. */
void meeting_on_end(struct meeting *m, uint32_t attempt, enum meeting_use use, uint64_t now,
		    struct meeting_todo *todo);

/* --- time -------------------------------------------------------------------------------------- */

void meeting_on_time(struct meeting *m, uint64_t now, struct meeting_todo *todo);

#endif
