/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconnect.h -- several connections, one after the other, between the same two nodes. Each of them
 * writes to the same area of the target's memory, "the place".
 *
 * While bytes are in flight, the initiator closes a connection in one of the ways that an
 * application has, or is killed, and then connects again. The bytes in flight can be in the
 * network, in the queue of the target's kernel or in the ring, in the target's receive buffer, or
 * in the middle of a stuck store. One rule must hold: after a flush of a later connection is
 * acknowledged, no byte of an earlier connection reaches the place, neither in the cache nor on the
 * medium.
 *
 * Every Write fills its range with its version, a number that grows over all connections. So the
 * check needs no history: each byte must have at least the acknowledged version.
 *
 * The product has four protections. For each of them the simulation has a mode that switches it
 * off:
 *
 *   reset    A connection that is not closed in good order is reset, and its end sends no more
 *            bytes.
 *   mark     The end sets the word "given up" in the rings.
 *   look     Before the target places bytes, it checks whether the connection was given up.
 *   barrier  The new connection names the former ones, and the target answers after it has cut
 *            them.
 *
 * In a run with a barrier the network loses resets and delivers bytes late, and stores to the place
 * can be stuck. A run without a barrier (the peer is old, or a process without an owner's name
 * died) has none of these faults, because the other three protections do not cover them.
 */
#ifndef SIM_RECONNECT_H
#define SIM_RECONNECT_H

#include "sim.h"

#define RECONNECT_OPS      40  /* a connection posts at most this many operations */
#define RECONNECT_STALLS   3   /* number of stuck stores in a run */
#define RECONNECT_VERSIONS 255 /* versions of all Writes of a run: a version has one byte */

#define RECONNECT_ENDS(X)                                                                          \
	X(ORDERLY) /* disconnects, and waits for the end of the connection */                      \
	X(DELETE)  /* deletes a busy connection, perhaps after some time without an answer */      \
	X(HURRIED) /* disconnects, and deletes the connection before it has ended */               \
	/* disconnects, and continues when the end is reported, or at a time limit */              \
	X(LIMIT)                                                                                   \
	X(LOST)   /* gets the event that the peer is lost */                                       \
	X(TARGET) /* the target disconnects first, while Writes are in flight */                   \
	/* does not end: writes to another area, and the target must not cut the connection */     \
	X(STAY)                                                                                    \
	X(KILL) /* the process dies; the next process has a new identity */
enum reconnect_end {
#define X(name) END_##name,
	RECONNECT_ENDS(X)
#undef X
		END_COUNT
};

enum reconnect_kind { RC_WRITE, RC_ELSEWHERE, RC_ATOMIC, RC_SEND, RC_FLUSH };

struct reconnect_op {
	enum reconnect_kind kind;
	uint64_t off; /* offset in the target's arena */
	uint32_t len;
	uint8_t version;
};

struct reconnect_conn {
	enum reconnect_end end;
	unsigned ends_after; /* number of operations after which the end begins */
	/* number of operations after which the network stops; RECONNECT_OPS: it never stops */
	unsigned stops_after;
	uint64_t stop_ns;
	uint64_t delete_ns;    /* time from the last operation to the end */
	uint64_t pause_ns;     /* after the set-up the target's thread does not run for this time */
	unsigned recv_percent; /* probability in percent that the target posts a receive */
	struct reconnect_op op[RECONNECT_OPS];
	uint64_t staged; /* used bytes of the stage */
	unsigned posted, completed;
	bool failed, ending, over;
	bool beside; /* the next connection began together with this one */
	uint64_t ends_at;
};

struct reconnect {
	unsigned planned; /* number of connections that have to succeed */
	/* the run has a barrier, so the network can lose and delay bytes, and stores to the place
	 * can be stuck */
	bool barrier;
	bool takes_part[2]; /* whether each end takes part in the barrier */
	bool named;         /* the initiator's processes have the same owner's name */
	bool stopped;       /* the network delivers no byte from stopped_at to resume_at */
	uint64_t stopped_at, resume_at;
	/* if the network keeps order: from this time on, no byte of a former connection arrives */
	uint64_t quiet_at;
	uint64_t done_at; /* time at which the initiator ended the connection; 0: not yet */
	uint8_t version;
	/*
	 * the acknowledged version of each byte of the arena: [0] in the cache, [1] on the medium
	 */
	uint8_t *floor[2];
	uint64_t room;
	unsigned stalls;
	struct reconnect_conn conn[WORLD_CONNS];
};

/* Cases that all runs together have reached; each count must be positive. */
#define RECONNECT_COVERAGE(X)                                                                      \
	X(connections)                                                                             \
	X(later) /* connections that begin after another connection */                             \
	X(rings)                                                                                   \
	X(acknowledged) /* acknowledged flushes of later connections */                            \
	/* location of bytes of a former connection when a later connection begins: */             \
	X(in_network)      /* in the network */                                                    \
	X(in_queue)        /* in the queue of the target's kernel */                               \
	X(in_ring)         /* in the ring */                                                       \
	X(in_buffer)       /* in the target's receive buffer */                                    \
	X(in_placement)    /* in the middle of a store */                                          \
	X(atomics_waiting) /* in an atomic Write that waits for a flush */                         \
	X(questions)       /* connections that name former ones or an owner */                     \
	X(waits)           /* the target has to cut some of the named connections first */         \
	X(cut)                                                                                     \
	X(cut_late) /* a connection is named before its own Origin arrives */                      \
	X(refused)  /* the target could not cut the named connections in time */                   \
	X(stayed)   /* a STAY connection existed until the others were done */                     \
	X(network_stops)                                                                           \
	X(resets_lost)                                                                             \
	X(lost)                                                                                    \
	X(stuck)                                                                                   \
	X(finished)
struct reconnect_coverage {
	unsigned long long runs, events;
	unsigned long long ends[END_COUNT];
#define X(name) unsigned long long name;
	RECONNECT_COVERAGE(X)
#undef X
};

/* Returns true if no rule was violated. */
bool reconnect_run(struct world *w, uint64_t seed, const struct sim_options *opt);
void reconnect_fini(void);
void reconnect_print(FILE *to);
/* Report a run with a violation, before the run is stopped. */
void reconnect_report(const struct world *w, FILE *to);
/* Returns true if every case happened at least once. Prints the cases that did not. */
bool reconnect_is_complete(FILE *to);
extern struct reconnect_coverage reconnect_seen;
/* Count the cases when a connection begins, and when a run has ended. */
void reconnect_seen_begin(struct sim *sim);
void reconnect_seen_run(const struct world *w);

/* --- hooks of the nodes ------------------------------------------------------------------- */

void reconnect_on_event(struct sim *sim, const struct event *e);
void reconnect_on_stream_event(struct node *n, enum stream_event event, int status);
/* Let the thread get stuck in this call, if a stuck store is planned for this memory. Called before
 * a store or receive to the memory of the node. */
void reconnect_may_stall(struct node *n, const void *dst);
/* Returns the time for which the target's kernel has not acknowledged sent bytes. */
uint64_t reconnect_unacknowledged_ns(const struct node *n);
/* Returns true if the network loses this reset. */
bool reconnect_loses_reset(struct sim *sim);
/*
 * reconnect_oracle.c: check that acknowledged data are in memory, which must be true at any time.
 */
void reconnect_check(struct world *w);
void reconnect_oracle_init(struct world *w);
/* Note that the flush `op` of connection c is acknowledged. */
void reconnect_acknowledge(struct world *w, unsigned c, unsigned op);

static inline struct reconnect_conn *reconnect_conn_of(const struct node *n)
{
	return &n->sim->world->reconnect->conn[n->sim->index];
}

/* reconnect_post.c: post one random operation; post the last operation, a flush of the place. */
void reconnect_post_one(struct node *n);
void reconnect_post_last(struct node *n);
/* functions of reconnect_plan.c */
void reconnect_plan(struct world *w, const struct sim_options *opt);
void reconnect_plan_memory(struct sim *sim);
/* functions of reconnect_app.c */
void reconnect_tick(struct node *n);
/* Let the initiator begin the next connection. */
void reconnect_begin(struct world *w);

#endif
