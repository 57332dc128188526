/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim.h -- two queue pairs without rdma_cm try to connect to each other ("meet"), thousands of
 * times, each time with another seed. The meeting (src/softrnic/stream/meeting.c) is the product's
 * code. Its owner, the network, the users and the clock are simulated.
 *
 * A dial is a connect over TCP, and a parked dial is one that waits for its queue pair (meeting.h).
 * First the users move their queue pairs to RTR and back, post, fail, die and start again. Other
 * programs ("strangers") dial, and the network delays, breaks and misdirects connections. Then the
 * trouble ends ("peace"): each user whose queue pair is broken, or whose peer is gone, brings the
 * queue pair to RTR with the right name. The two must then meet in time, and a message must arrive
 * in each direction.
 *
 * oracle.c checks the rules that must hold at every step.
 */
#ifndef MEETING_SIM_H
#define MEETING_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/prng.h"
#include "softrnic/stream/meeting.h"

#define CONNS_MAX  8192
#define EVENTS_MAX 32768

/* Rules that a mode breaks; a run must detect each breach. */
/* clang-format off */
#define SIM_MODES(X)                                                                               \
	X(HONEST, "honest")                                                                        \
	X(NO_LOOK, "no-look")             /* a move to RTR does not use a parked dial */  \
	X(UNUSED_LOST, "unused-lost")     /* a stream without messages counts as used */ \
	X(USED_AGAIN, "used-again")       /* a stream with messages counts as unused */ \
	X(NO_FALLBACK, "no-fallback")     /* the end that waits for a dial never dials itself */ \
	/* a dial yields although its request is already sent */ \
	X(CROSSWISE, "crosswise") \
	X(NO_YIELD, "no-yield")           /* a dial never yields to the peer's dial */                           \
	X(GIVES_UP, "gives-up")           /* an end stops dialing after five minutes */ \
	X(KEEPS_DIAL, "keeps-dial")       /* a reset does not end the attempt */                   \
	/* events of an earlier attempt count for the present one */ \
	X(LATE_EVENTS, "late-events") \
	X(ANY_NAME, "any-name")           /* the sender's name is not compared */                  \
	X(REPLACED_STAYS, "replaced-stays") /* a parked dial is replaced, but not ended */ \
	/* the retry clock has no lower limit for a peer that this end never met */ \
	X(NO_FLOOR, "no-floor") \
	X(STOPPED_CLOCK, "stopped-clock") /* the retry clock stops when the peer accepts a dial */ \
	X(LOST_AT_ONCE, "lost-at-once") /* requests fail when their stream ends */ \
	X(LOST_UNTIMED, "lost-untimed") /* the end of a stream does not start the retry clock */
/* clang-format on */
enum sim_mode {
#define X(name, text) SIM_##name,
	SIM_MODES(X)
#undef X
};

/* --- connections ------------------------------------------------------------------------------ */

struct side {
	bool is_open;
	bool said_hello, live;
	uint64_t last; /* time at which the last bytes arrive; later bytes must not overtake them */
	uint32_t incarnation;
	/* attempt: number of the meeting's attempt that uses this connection */
	uint32_t attempt;
};

enum stage { CONNECTING, SENT, READ, ACCEPTED, AGREED };

struct conn {
	int id, dialer; /* id: number of the connection; dialer: number of the end that dials */
	bool nowhere;   /* the dial reached a host or program that is not the peer */
	bool stranger;  /* a third program dialed */
	enum stage stage;
	struct side side[2];
	struct meeting_inbound in; /* the request that the dial carries */
};

/* --- ends ------------------------------------------------------------------------------------- */

enum route { ROUTE_OPEN, ROUTE_SILENT, ROUTE_ELSEWHERE }; /* where the dials of an end arrive */

struct end {
	struct sim *sim;
	int i;
	struct meeting m;
	struct meet_end name, peer;
	struct conn *conn; /* connection of the present attempt */
	bool up, self;
	enum route route;
	/* numbers of the queue pair's incarnation, of its timer, and of the process */
	uint32_t incarnation, timer, life;
	unsigned sent, acked, received; /* numbers of the last messages on the present stream */
	uint32_t heard;                 /* incarnation of the peer that sent the first message */
	/* waits_for_work: the user has posted work, and the ends have not met since */
	bool waits_for_work;
	bool refused;      /* the peer refused a message, and then reset the connection */
	uint64_t fails_at; /* limit by which the retry clock must end the wait */
	uint64_t retry_ns, floor_ns;
	unsigned troubles_left;
};

/* --- the world ---------------------------------------------------------------------------------- */

enum event_kind {
	EV_CONNECT, /* a dial reaches the other host */
	EV_REQUEST,
	EV_REPLY,
	EV_HELLO,
	EV_MESSAGE,
	EV_ACK,
	EV_RESET, /* the other side has reset its connection */
	EV_LATE,  /* the owner gets an event of an earlier attempt */
	EV_TIMER,
	EV_TROUBLE, /* a user or the network makes trouble */
	EV_COME_AGAIN,
	EV_STRANGER,
	EV_PEACE,
};

struct sim_event {
	uint64_t at, order;
	enum event_kind kind;
	int end;
	struct conn *conn;
	uint32_t arg;
};

struct sim {
	uint64_t seed, now, order;
	struct prng prng;
	enum sim_mode mode;
	struct end end[2];
	struct conn *conns;
	int n_conns;
	struct sim_event *heap;
	int n_events;
	/* delay_ns: largest delay of the network; scale_ns: time scale of the users' actions */
	uint64_t delay_ns, scale_ns;
	bool peace, verbose;
	bool calm; /* no trouble: each user moves to RTR once, and all dials reach the peer */
	/* time at which peace began, or time of the last reset because of earlier trouble */
	uint64_t peace_since;
	unsigned resets_in_peace;
	const char *violation;
};

/* Coverage: how often each case occurred in all runs. A run that reaches no case proves nothing. */
extern uint64_t sim_dials, sim_accepts, sim_parked, sim_rejects, sim_yields, sim_fails, sim_losses,
	sim_unused, sim_selves, sim_unacknowledged;

bool sim_run(struct sim *sim, uint64_t seed, enum sim_mode mode, bool verbose);
void sim_note(const struct sim *sim, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_violates(struct sim *sim, const char *what);
void sim_add(struct sim *sim, uint64_t delay, enum event_kind kind, int end, struct conn *conn,
	     uint32_t arg);
uint64_t sim_delay(struct sim *sim);

void conn_dial(struct end *e);
struct conn *conn_new(struct sim *sim, int dialer, const struct meet_end *from,
		      const struct meet_end *to);
void conn_accept(struct end *e, struct conn *c);
void conn_close(struct conn *c, struct end *e);
void conn_send(struct conn *c, struct end *from, enum event_kind kind);
void conn_on(struct sim *sim, const struct sim_event *ev);

void end_come_up(struct end *e);
void end_rtr(struct end *e, const struct meet_end *peer);
void end_leave(struct end *e, enum meeting_leave how);
void end_die(struct end *e);
void end_post(struct end *e);
void end_on_timer(struct end *e, uint32_t timer);
void end_perform(struct end *e, struct meeting_todo *todo);
void end_on_inbound(struct end *e, struct conn *c);
void end_on_established(struct end *e, struct conn *c);
void end_on_reply(struct end *e, struct conn *c);
void end_on_live(struct end *e, struct conn *c);
void end_on_message(struct end *e, struct conn *c, uint32_t sender);
void end_on_reset(struct end *e, struct conn *c);
/* arg: numbers of the process and of the attempt */
void end_on_late(struct end *e, uint32_t arg, uint64_t which);

void user_plan(struct sim *sim);
void user_trouble(struct end *e);
void user_stranger(struct sim *sim, struct end *e);
void user_makes_peace(struct sim *sim);
/* In peace: if earlier trouble has broken the queue pair, bring it to RTR with the right name. */
void user_repairs(struct end *e);

void oracle_check(struct sim *sim);
bool oracle_is_done(struct sim *sim);

static inline struct end *end_other(struct end *e)
{
	return &e->sim->end[1 - e->i];
}

static inline bool end_looks(const struct end *e)
{
	return e->m.state == MEETING_DIALING || e->m.state == MEETING_AWAITING;
}

#endif
