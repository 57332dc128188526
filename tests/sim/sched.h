/* SPDX-License-Identifier: BSD-3-Clause */
/* sched.h -- a queue of events in virtual time, as a heap. Events with equal times are first in,
 * first out. */
#ifndef SIM_SCHED_H
#define SIM_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
	EV_DIALED,    /* TCP has connected */
	EV_ARRIVE,    /* bytes up to stream position `arg` have crossed the link */
	EV_RESET,     /* a RST reaches `node` */
	EV_PUMP,      /* `node` runs */
	EV_TIME,      /* a time limit of `node` has passed */
	EV_APP,       /* the application of `node` runs */
	EV_WRITEBACK, /* the write-back of `node` ends */
	EV_COPY,      /* the medium gets a part of the bytes of a write-back */
	EV_DEREG,     /* `node` deregisters a region, or checks whether requests still use it */
	EV_MEET,      /* a packet arrives at `node` through the Unix socket of both ends */
	EV_RESUME,    /* connections in a row: the network delivers again */
	EV_GO_ON,     /* a stuck store of `node` continues */
	EV_CUT,       /* the scenario's fault, if the fault has a time */
	EV_IMPATIENT, /* the run takes too long, so the users disconnect */
	EV_GIVE_UP,   /* the run takes far too long, which is reported as a hang */
};

struct event {
	uint64_t at, order;
	enum event_kind kind;
	/* number of the node: twice the connection's number, plus the number of the end */
	int node;
	uint64_t arg;
};

struct sched {
	struct event *heap;
	size_t count, room;
	uint64_t order;
};

void sched_fini(struct sched *s);
void sched_clear(struct sched *s);
void sched_add(struct sched *s, uint64_t at, enum event_kind kind, int node, uint64_t arg);
/* Drop all events of a kind at both ends of a connection. */
void sched_drop(struct sched *s, enum event_kind kind, unsigned conn);
bool sched_pop(struct sched *s, struct event *out);

#endif
