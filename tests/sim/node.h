/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h -- one end: a stream with its queue pair. The product's code performs the stream, but in
 * virtual time and with random choices.
 */
#ifndef SIM_NODE_H
#define SIM_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "inbox.h"
#include "memory.h"
#include "model.h"
#include "softrnic/stream/fence.h"
#include "softrnic/stream/former.h"
#include "softrnic/stream/stream.h"

struct sim;

/* State shared by the ends on one host. */
struct host {
	struct ibv_pd pd;
	struct mr_table *mrs;
	/* Jobs that come during a write-back share the next one, over all ends. */
	bool shares;
	unsigned writing;    /* jobs of the write-back under way */
	struct list waiting; /* list of struct node, by job.waits */
	uint64_t ends_at;    /* end time of the job that began last */
};

/* The write-back under way. */
struct node_writeback {
	struct qp_job wb;
	bool running;
	uint64_t busy_until; /* the pool takes no job before this time */
	bool late;           /* broken on purpose: acknowledged, and not made yet */
	bool joined;         /* broken on purpose: ends with an earlier write-back */
	bool snapshot;
	struct list waits; /* node of the list for the host's next write-back */
	uint64_t salt;     /* chooses which pieces come first */
	uint8_t *bytes;
	uint64_t room;
	unsigned count;
};

struct node {
	struct sim *sim;
	struct node *peer;
	struct host *host;
	int index;
	struct stream *stream;
	struct qp *qp; /* NULL: the QP is destroyed; the stream owns it, tests may look at it */
	struct cq send_cq, recv_cq;
	struct inbox own_box, *box;
	/* mem: own_mem; at the target of connections in a row, that of the first connection */
	struct memory own_mem, *mem;
	struct model model; /* the requests of this end to its peer */
	void *buf[2];       /* one of each kind, for the stream */
	bool lent[2];
	/* a reset came, so the peer's end may be here, whatever the process does */
	atomic_uint alarm;
	bool resumed, pump_due, eof_seen, stopping;
	unsigned budget;   /* reads and writes left in this visit */
	uint64_t deadline; /* the deadline that is scheduled */
	/* Events that the user got. */
	bool requested, answered, established, disconnected;
	bool ended;   /* there is no connection, and none will come */
	bool killed;  /* the process is gone */
	bool lost;    /* the node got the report that its peer is lost */
	bool refused; /* there is no connection, and none will come */
	uint64_t paused_until;
	uint64_t stuck_until; /* a store of the node's visit is stuck: stall.h */
	uint64_t busy_until;  /* connections in a row: the application polls often until then */
	uint64_t resumed_at;
	bool destroyed;     /* the user destroyed the queue pair */
	bool overrun;       /* a completion was lost */
	bool disconnecting; /* the user has disconnected */
	/* Events of the CQ for receives. */
	bool armed, notified, expected;
	struct node_writeback job;
	unsigned recv_completed;
	bool recv_failed;
	unsigned reused;               /* number of operations whose sources have changed by now */
	unsigned phase;                /* phase of the operations that may be posted */
	unsigned posted_at_disconnect; /* operations that were posted when the user disconnected */
	bool lease_ended;              /* the peer invalidated the lease */
	/* The deregistration under way. */
	uint64_t dereg_since;
	enum area_kind dereg_area;
	bool dereg_pool;
	/* Counted for the coverage. */
	unsigned looks, evictions, shared, lists, refused_lists, waiting_writes, events;
	uint64_t in_place_bytes;
	uint64_t put_bytes; /* bytes that went straight into the link's memory */
	/* The barrier: origin.h. */
	struct former former;
	struct fence_member fenced;
	unsigned process;
	bool owner_is_named, cut_due, fence_ends;
	bool leaves; /* this end's user has to disconnect */
	/* On the move to rings in shared memory. */
	bool meets, has_memory;
	struct { /* bytes of a ring that are being parsed */
		uint8_t *bytes;
		size_t len, next; /* begin of the next FPDU */
	} shown;
	unsigned long long scrambled; /* number of headers that changed after they were read */
	uint64_t looked_at; /* end of the bytes that the node has parsed in place, taken or not */
};

void node_start(struct node *n, struct sim *sim, int index);
/* Make the queues and the queue pair; the inboxes are laid out. */
void node_open(struct node *n);
/* Delete everything; a violation if something is left behind. */
void node_stop(struct node *n);
void node_free(struct node *n);
/* Make a new stream for the (next) connection. */
void node_open_stream(struct node *n);
/* The user destroys the queue pair in full flight, or later during a write-back. */
void node_destroy_qp(struct node *n);
struct cq *node_recv_cq(struct node *n); /* the queue in which the node's receives complete */
/* node_io.c: the functions of a node for its stream. */
extern const struct stream_host node_host;
/* Carry out pending work: the work of the last call on the stream, or any other work. */
void node_perform(struct node *n, struct stream_update *u);
void node_pump(struct node *n);
void node_kill(struct node *n);
/* Take arrived bytes before the stream gets the time. */
void node_read(struct node *n, struct stream_update *u);
void node_pump_soon(struct node *n);
/* writeback.c */
bool node_start_job(void *owner, struct stream_update *u);
void node_stop_job(void *owner);
void node_on_writeback(struct node *n);
void node_on_copy(struct node *n);
/* Bytes reach the medium without a request: a cache evicts, a kernel writes back. */
void node_evict(struct node *n);
/* The power fails now: does the medium have the bytes that it must have? */
void node_check_power(struct node *n);
/* node_events.c */
void node_on_reset(struct node *n, int err);
/* Has the peer given up, so that earlier bytes do not count any more? */
bool node_is_over(void *owner);
void node_on_time(struct node *n);
void node_on_dereg(struct node *n);
struct mr **node_dereg_mr(struct node *n); /* the region that is deregistered; NULL afterwards */
/* The user deregisters the region that the peer invalidated. */
void node_end_lease(struct node *n);
/* Does a completion of the node's sends mean that their bytes are at the peer? */
bool node_is_acknowledged(const struct node *n);
/* broken.c: execute atomic writes without waiting for the Flush before them. */
void node_run_atomics_early(struct node *n);
void node_ignore_read_flushes(struct node *n);
void node_acknowledge_early(struct node *n);

#endif
