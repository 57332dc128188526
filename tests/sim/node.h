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

/* State that all ends on one host share. */
struct host {
	struct ibv_pd pd;
	struct mr_table *mrs;
	/* shares: jobs that arrive during a write-back wait for the next write-back, which all ends
	 * of the host share */
	bool shares;
	unsigned writing;    /* number of jobs of the running write-back */
	struct list waiting; /* waiting jobs: list of struct node, linked by job.waits */
	uint64_t ends_at;    /* end time of the job that began last */
};

/* The running write-back. */
struct node_writeback {
	struct qp_job wb;
	bool running;
	uint64_t busy_until; /* time at which the pool begins the job */
	bool late;           /* broken on purpose: acknowledge the write-back before making it */
	bool joined;         /* broken on purpose: end with an earlier write-back */
	bool snapshot;
	struct list waits; /* link in host.waiting */
	uint64_t salt;     /* decides which pieces reach the medium first */
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
	struct qp *qp; /* NULL if the QP is destroyed. The stream owns the QP; checks may read it */
	struct cq send_cq, recv_cq;
	struct inbox own_box, *box;
	/* mem: usually own_mem; with connections in a row, the memory of the first target is used
	 * by all targets */
	struct memory own_mem, *mem;
	struct model model; /* the requests of this end to its peer */
	void *buf[2];       /* the stream's buffers, one of each kind */
	bool lent[2];
	/* alarm: a reset has arrived, so the peer's end can be known even if the process does not
	 * run */
	atomic_uint alarm;
	bool resumed, pump_due, eof_seen, stopping;
	unsigned budget;   /* reads and writes that are still permitted in this run of the node */
	uint64_t deadline; /* the deadline that is scheduled */
	/* Events that the user has received. */
	bool requested, answered, established, disconnected;
	bool ended;   /* the user has no connection, and will not get one */
	bool killed;  /* the process has been killed */
	bool lost;    /* the user got the report that the peer is lost */
	bool refused; /* the connection was refused, so the user gets no connection */
	uint64_t paused_until;
	uint64_t stuck_until; /* until then a store of this node is stuck (stall.h) */
	uint64_t busy_until;  /* connections in a row: until then the application polls often */
	uint64_t resumed_at;
	bool destroyed;     /* the user destroyed the queue pair */
	bool overrun;       /* the completion queue overran and lost a completion */
	bool disconnecting; /* the user has disconnected */
	/* State of the CQ for receives: armed, event received, event expected. */
	bool armed, notified, expected;
	struct node_writeback job;
	unsigned recv_completed;
	bool recv_failed;
	unsigned reused;               /* operations whose sources have changed so far */
	unsigned phase;                /* operations up to this phase are allowed to be posted */
	unsigned posted_at_disconnect; /* number of posted operations when the user disconnected */
	bool lease_ended;              /* the peer has invalidated the STag of AREA_LEASE */
	/* The deregistration in progress: its start time and its area. */
	uint64_t dereg_since;
	enum area_kind dereg_area;
	bool dereg_pool;
	/* Counts for the coverage. */
	unsigned looks, evictions, shared, lists, refused_lists, waiting_writes, events;
	uint64_t in_place_bytes;
	uint64_t put_bytes; /* bytes that were written straight into the link's memory */
	/* State for the barrier (origin.h). */
	struct former former;
	struct fence_member fenced;
	unsigned process;
	bool owner_is_named, cut_due, fence_ends;
	bool leaves; /* the user of this end will disconnect */
	/* State of the move to rings in shared memory. */
	bool meets, has_memory;
	struct { /* the bytes of a ring that the queue pair is parsing */
		uint8_t *bytes;
		size_t len, next; /* next: offset of the next FPDU */
	} shown;
	unsigned long long scrambled; /* headers that the test changed after they were read */
	/*
	 * stream position after the bytes that were parsed in place, whether or not they were taken
	 */
	uint64_t looked_at;
};

void node_start(struct node *n, struct sim *sim, int index);
/* Make the queues and the queue pair, after the inboxes are laid out. */
void node_open(struct node *n);
/* Delete all objects of the node. An object that is left over is a violation. */
void node_stop(struct node *n);
void node_free(struct node *n);
/* Make a new stream, for the first or the next connection. */
void node_open_stream(struct node *n);
/* Destroy the queue pair, as its user does while operations are outstanding. If a write-back is
 * running, first wait until it has finished. */
void node_destroy_qp(struct node *n);
/* returns the queue in which the node's receives complete */
struct cq *node_recv_cq(struct node *n);
/* node_io.c: the functions of a node for its stream. */
extern const struct stream_host node_host;
/* Perform the update `u`, or other pending work. */
void node_perform(struct node *n, struct stream_update *u);
void node_pump(struct node *n);
void node_kill(struct node *n);
/* Take the bytes that have arrived, before the stream handles the current time. */
void node_read(struct node *n, struct stream_update *u);
void node_pump_soon(struct node *n);
/* functions of writeback.c */
bool node_start_job(void *owner, struct stream_update *u);
void node_stop_job(void *owner);
void node_on_writeback(struct node *n);
void node_on_copy(struct node *n);
/* Write back bytes without a request, like a cache that evicts lines or a kernel that writes pages
 * back. */
void node_evict(struct node *n);
/* Check the content that a power failure at this moment would leave on the medium. */
void node_check_power(struct node *n);
/* functions of node_events.c */
void node_on_reset(struct node *n, int err);
/* Returns true if the peer has given up the connection, so that bytes that it sent earlier must not
 * be placed any more. */
bool node_is_over(void *owner);
void node_on_time(struct node *n);
void node_on_dereg(struct node *n);
/* returns the region that is being deregistered; NULL after the deregistration */
struct mr **node_dereg_mr(struct node *n);
/* Deregister, as the user of this end, the region that the peer has invalidated. */
void node_end_lease(struct node *n);
/*
 * Returns true if the completion of a Send of this node proves that the peer has the Send's bytes.
 */
bool node_is_acknowledged(const struct node *n);
/* broken.c: break a rule on purpose. node_run_atomics_early() executes atomic writes before the
 * Flush that precedes them. */
void node_run_atomics_early(struct node *n);
void node_ignore_read_flushes(struct node *n);
void node_acknowledge_early(struct node *n);

#endif
