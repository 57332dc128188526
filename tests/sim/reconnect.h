/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reconnect.h -- several connections, one after the other, between the same two nodes. Each of them
 * writes to the same place of the target's memory.
 *
 * The initiator ends a connection in any way that an application or its death can, while bytes are
 * under way, and connects again. These bytes may be in the network, in the queue of the target's
 * kernel or in the ring, in the target's receive buffer, or in the middle of a stuck store. One
 * rule must hold: after a flush of a later connection is acknowledged, no byte of an earlier one
 * reaches that place, neither in the cache nor on the medium.
 *
 * Every Write fills its range with its version, a number that grows over all connections. So the
 * check needs no history: each place must have at least the acknowledged version.
 *
 * There are four protections, and for each a mode that switches it off:
 *
 * reset: an end that is not orderly is a reset, and nothing more leaves this end.
 *
 * mark: in rings, the word "given up" is set.
 *
 * look: the target looks for the end before it places bytes that came earlier.
 *
 * barrier: the new connection names the former ones; the target answers when they are cut.
 *
 * In a run with a barrier the network loses resets and delivers late, and stores to the place
 * itself may be stuck. A run without a barrier (an old peer, or a process that died without a name)
 * has neither, and there the other three protections are enough.
 */
#ifndef SIM_RECONNECT_H
#define SIM_RECONNECT_H

#include "sim.h"

#define RECONNECT_OPS      40  /* most operations that a connection posts */
#define RECONNECT_STALLS   3   /* stalls of a run */
#define RECONNECT_VERSIONS 255 /* versions of all Writes: one byte */

#define RECONNECT_ENDS(X)                                                                          \
	X(ORDERLY) /* disconnects, and waits for the end */                                        \
	X(DELETE)  /* deletes a busy connection, perhaps after a while without an answer */        \
	X(HURRIED) /* disconnects, and deletes the connection before its end */                    \
	X(LIMIT)  /* disconnects, and goes on when the end is reported: perhaps by a time limit */ \
	X(LOST)   /* gets the event that the peer is lost */                                       \
	X(TARGET) /* the target disconnects first, while Writes are under way */                   \
	X(STAY)   /* does not end: writes to another place, and must not be cut */                 \
	X(KILL)   /* the process dies; the next process is another incarnation */
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
	unsigned ends_after;  /* number of operations before the end begins */
	unsigned stops_after; /* so many operations, then the network stops; RECONNECT_OPS: never */
	uint64_t stop_ns;
	uint64_t delete_ns;    /* delay of the end after the last operation */
	uint64_t pause_ns;     /* after the set-up the target gets no processor so long */
	unsigned recv_percent; /* percent: how readily the target posts receives */
	struct reconnect_op op[RECONNECT_OPS];
	uint64_t staged; /* bytes of the stage in use */
	unsigned posted, completed;
	bool failed, ending, over;
	bool beside; /* the next connection began together with this one */
	uint64_t ends_at;
};

struct reconnect {
	unsigned planned; /* connections that have to succeed */
	bool barrier;     /* the network may lose and delay, and stores to the place may be stuck */
	bool takes_part[2];             /* each end in the barrier */
	bool named;                     /* the initiator's processes have an owner's name */
	bool stopped;                   /* no byte crosses the network... */
	uint64_t stopped_at, resume_at; /* ...from the first to the second time */
	/* in a network that keeps order: from this time on no byte of the former connections
	 * comes */
	uint64_t quiet_at;
	uint64_t done_at; /* time of the initiator's end; 0: not yet */
	uint8_t version;
	/* for the cache and the medium: the acknowledged version of each byte of the arena */
	uint8_t *floor[2];
	uint64_t room;
	unsigned stalls;
	struct reconnect_conn conn[WORLD_CONNS];
};

/* Cases that the runs together have reached; each must be positive. */
#define RECONNECT_COVERAGE(X)                                                                      \
	X(connections)                                                                             \
	X(later) /* connections after another connection */                                        \
	X(rings)                                                                                   \
	X(acknowledged)    /* flushes of later connections */                                      \
	X(in_network)      /* when a later one began: bytes of a former one in the network, */     \
	X(in_queue)        /* in the queue of the target's kernel, */                              \
	X(in_ring)         /* in the ring, */                                                      \
	X(in_buffer)       /* in the target's receive buffer, */                                   \
	X(in_placement)    /* and in the middle of a store */                                      \
	X(atomics_waiting) /* and an atomic Write that waits for a flush */                        \
	X(questions)       /* a connection names former connections, or its owner */               \
	X(waits)           /* the target also has to cut some of them */                           \
	X(cut)                                                                                     \
	X(cut_late) /* named before the connection had named itself */                             \
	X(refused)  /* they could not be cut in time */                                            \
	X(stayed)   /* stayed until the others were done */                                        \
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
/* Did every case happen at least once? Prints the cases that did not. */
bool reconnect_is_complete(FILE *to);
extern struct reconnect_coverage reconnect_seen;
/* A connection begins; a run has ended. */
void reconnect_seen_begin(struct sim *sim);
void reconnect_seen_run(const struct world *w);

/* --- hooks of the nodes ------------------------------------------------------------------- */

void reconnect_on_event(struct sim *sim, const struct event *e);
void reconnect_on_stream_event(struct node *n, enum stream_event event, int status);
/* A store or a receive to memory of this node: the thread may get stuck in it. */
void reconnect_may_stall(struct node *n, const void *dst);
/* Returns the time for which the target's kernel has not acknowledged sent bytes. */
uint64_t reconnect_unacknowledged_ns(const struct node *n);
/* Is a reset lost? */
bool reconnect_loses_reset(struct sim *sim);
/* reconnect_oracle.c: acknowledged data must be there at any time. */
void reconnect_check(struct world *w);
void reconnect_oracle_init(struct world *w);
/* The flush `op` of connection c is acknowledged. */
void reconnect_acknowledge(struct world *w, unsigned c, unsigned op);

static inline struct reconnect_conn *reconnect_conn_of(const struct node *n)
{
	return &n->sim->world->reconnect->conn[n->sim->index];
}

/* reconnect_post.c: post one operation at random; and post the flush of the place, the last
 * operation. */
void reconnect_post_one(struct node *n);
void reconnect_post_last(struct node *n);
/* reconnect_plan.c */
void reconnect_plan(struct world *w, const struct sim_options *opt);
void reconnect_plan_memory(struct sim *sim);
/* reconnect_app.c */
void reconnect_tick(struct node *n);
/* The initiator begins the next connection. */
void reconnect_begin(struct world *w);

#endif
