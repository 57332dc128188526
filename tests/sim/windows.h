/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * windows.h -- runs with memory windows, over reliable (RC) and unreliable (UC) queue pairs.
 *
 * The second node of each connection, the owner, binds windows of type 1 and of type 2 to its
 * memory, with random places and rights. It ends a window by a Local Invalidate, by another Bind,
 * or by deallocating the window. The first node, the writer, uses the windows' STags. It also uses
 * STags of windows that have ended, exceeds the bounds, lacks the right, or uses a window of type 2
 * over a connection that the window does not permit. It invalidates some windows by a Send.
 *
 * Every Write and every Send has its own version, which is the value of all its bytes. So after
 * each event the owner's memory shows which Writes were placed. These rules must hold:
 *
 * bounds: a byte changes only by a Write that the window permits: its range, its rights and its
 * queue pair.
 *
 * end: no byte changes through a window after the completion that reports the window's end.
 *
 * hold: a region with a window cannot be deregistered. No object holds a window that has ended.
 *
 * whole: UC loses only whole messages. A Write that a live window permits is placed completely or
 * not at all. A received Send is a Send of the peer, complete and in order. A Write with Immediate
 * Data is placed before its receive completes.
 *
 * quiet: on UC no action of the writer causes an error at either end.
 *
 * placed: on RC with Acks, a completed Write is in memory. After a completed Flush through a
 * window, all earlier Writes to the Flush's range are on the medium.
 */
#ifndef SIM_WINDOWS_H
#define SIM_WINDOWS_H

#include "sim.h"
#include "softrnic/rnic/mw.h"

#define WIN_CONNS    2
#define WIN_WINDOWS  3 /* number of windows of an owner */
#define WIN_BINDINGS 48
#define WIN_OPS      60
#define WIN_VERSIONS 250 /* a version has one byte */

enum win_kind { WIN_WRITE, WIN_WRITE_IMM, WIN_SEND, WIN_SEND_INV, WIN_READ, WIN_FLUSH, WIN_KINDS };

enum binding_state { BIND_POSTED, BIND_LIVE, BIND_ENDING, BIND_DEAD };

struct win_binding {
	unsigned window;
	enum ibv_mw_type type;
	uint32_t stag;
	enum area_kind area;
	uint64_t off, len; /* offset and length in the owner's arena */
	uint64_t to;
	int access;
	enum binding_state state;
	bool refused; /* the Bind must fail */
};

struct win_op {
	enum win_kind kind;
	struct win_conn *owner; /* connection of the binding */
	struct win_binding *b;  /* NULL: a plain Send */
	uint64_t off;           /* offset in the owner's arena */
	uint32_t len;
	uint8_t version;
	bool forbidden; /* the window never permits this operation */
	bool was_dead;  /* the window had ended when the operation was posted */
	bool placed;    /* some bytes of the Write were seen in memory */
	bool completed, received;
};

struct win_window {
	struct mw *mw;
	uint32_t key; /* STag of the last Bind */
	int pending;  /* the binding whose Bind is posted but not complete; -1: none */
	int live;     /* the binding in force; -1: none */
};

struct win_conn {
	struct win_window window[WIN_WINDOWS];
	struct win_binding binding[WIN_BINDINGS];
	unsigned bindings;
	struct win_op op[WIN_OPS];
	unsigned planned, posted, completed;
	unsigned answered; /* an answer proves that every operation before this one was executed */
	unsigned received; /* every message of the writer before this one was received or lost */
	unsigned turns;    /* turns of the writer so far */
	uint64_t staged;   /* used bytes of the writer's stage */
	bool cut;          /* the owner disconnected while messages were in flight */
	bool may_fail;     /* an error at either end is permitted */
	bool failed;       /* an error was reported */
	bool given_back;   /* the windows are deallocated */
	uint8_t *shadow, *floor;
	uint64_t room;
};

struct windows {
	unsigned version;
	struct win_conn conn[WIN_CONNS];
	struct win_op *of_version[WIN_VERSIONS + 1];
};

/* Cases that the runs together have reached; each count must be positive. */
#define WINDOWS_COVERAGE(X)                                                                        \
	X(reliable)                                                                                \
	X(unreliable)                                                                              \
	X(acks)                                                                                    \
	X(rings)                                                                                   \
	X(binds_1)                                                                                 \
	X(binds_2)                                                                                 \
	X(rebinds)                                                                                 \
	X(unbinds)                                                                                 \
	X(refused_binds)                                                                           \
	X(local_invalidates)                                                                       \
	X(remote_invalidates)                                                                      \
	X(given_back)                                                                              \
	X(busy_regions)                                                                            \
	X(writes)                                                                                  \
	X(placed)                                                                                  \
	X(lost)                                                                                    \
	X(shared)                                                                                  \
	X(forbidden)                                                                               \
	X(after_end)                                                                               \
	X(immediates)                                                                              \
	X(sends)                                                                                   \
	X(lost_sends)                                                                              \
	X(reads)                                                                                   \
	X(flushes)                                                                                 \
	X(errors)                                                                                  \
	X(given_away)
struct windows_coverage {
	unsigned long long runs, events;
#define X(name) unsigned long long name;
	WINDOWS_COVERAGE(X)
#undef X
};
extern struct windows_coverage windows_seen;

/* Returns true if no rule was violated. */
bool windows_run(struct world *w, uint64_t seed, const struct sim_options *opt);
void windows_fini(void);
void windows_print(FILE *to);
bool windows_is_complete(FILE *to);

/* --- hooks of the nodes ------------------------------------------------------------------- */

void windows_on_event(struct sim *sim, const struct event *e);
void windows_on_stream_event(struct node *n, enum stream_event event);
/* Check a received message: it was sent, and it is complete and in order. `bytes`: the content of
 * the whole buffer. */
void windows_on_message(struct node *n, const struct ibv_wc *wc, const uint8_t *bytes);
/* Broken on purpose: returns true if only half of these bytes must be placed. */
bool windows_tears(void);

/* --- between the files -------------------------------------------------------------------- */

static inline struct win_conn *win_of(const struct node *n)
{
	return &n->sim->world->windows->conn[n->sim->index];
}
/* windows_plan.c */
void win_plan(struct world *w, const struct sim_options *opt);
/* windows_oracle.c */
void win_check_cache(struct sim *sim);
void win_check_medium(struct node *n);
void win_on_completed(struct node *n, struct win_op *op);
void win_verdict(struct sim *sim);
/* windows_owner.c */
void win_owner_tick(struct node *n);
void win_owner_on_completion(struct node *n, const struct ibv_wc *wc);
/* Note that the binding has ended: from now on, no byte must change through it. */
void win_end_binding(struct win_conn *c, struct win_binding *b);
void win_give_back(struct node *n);
/* windows_writer.c */
void win_writer_tick(struct node *n);
void win_writer_on_completion(struct node *n, const struct ibv_wc *wc);

#endif
