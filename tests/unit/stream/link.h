/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h -- two streams connected to each other, or one stream whose peer is the test. Bytes move
 * in pieces of `chunk`. Time stands still unless the test advances it.
 */
#ifndef TEST_STREAM_LINK_H
#define TEST_STREAM_LINK_H

#include "lib/unit.h"

#include "base/clock.h"
#include "softrnic/stream/stream.h"
#include "softrnic/proto/mpa.h"

#define PIPE_SIZE   (1u << 17)
#define LINK_MSS    1448
#define EVENT_KINDS (STREAM_EV_DEAD + 1)

struct pipe {
	uint8_t *bytes;
	size_t head, tail;
	bool fin, fin_read;
};

struct rig; /* a queue pair and its resources (rig.c) */

struct side {
	struct stream *s;
	struct stream_update u; /* the update that the last call returned */
	struct rig *rig;        /* NULL: the side has no QP */
	struct pipe in;
	struct side *peer;
	uint64_t *now;
	size_t chunk;
	bool closed;                /* the socket is closed */
	bool muted;                 /* the link takes no bytes of this side */
	bool moved;                 /* bytes or an end have moved since side_run() began */
	uint64_t unacknowledged_ns; /* the link's report for this side */
	uint64_t deadline;          /* the deadline that was set last */
	unsigned redials;
	unsigned seen[EVENT_KINDS]; /* number of events of each kind (side_events()) */
	unsigned finals;
	/*
	 * For the barrier (stream/fence.h), in which a new connection names former ones. At an
	 * initiator: how many connections it names next, and how often the peer has answered. At a
	 * responder: its answer to the peer's Origin, the number of Origins that ask, and the last
	 * Origin.
	 */
	unsigned names, fenced;
	enum stream_fence verdict;
	unsigned questions;
	struct ext_origin came;
	int status; /* status of the last event */
};

struct link {
	struct side a, b; /* a: initiator; b: responder */
	uint64_t now;
};

struct stream_config link_config(enum stream_role role);
extern const struct stream_params link_params; /* IRD and ORD 16, no private data */

/* If a configuration is NULL, that side does not exist, and the test fills and reads its pipe. */
void link_init(struct link *l, const struct stream_config *a, const struct stream_config *b);
void link_fini(struct link *l);
/* Run both sides until neither bytes nor ends move any more. */
void link_run(struct link *l);
/* Establish the initiator's TCP connection at both ends. */
void link_dial(struct link *l, const struct stream_params *params);
/* Dial, accept with link_params, and run until both sides are LIVE. */
void link_establish(struct link *l);
/* Take and count the pending events. */
void side_events(struct side *side);
/* Carry out the result of the last call on the stream, with the product's own code. */
void side_perform(struct side *side);
/* Advance the time, and let both sides check their deadlines. */
void link_pass(struct link *l, uint64_t ns);

/* The following functions are for a peer that is written in the test. */
void side_feed(struct side *to, const void *bytes, size_t len);
void side_feed_fin(struct side *to);
/* Take up to max bytes of those that `from` has sent. */
size_t side_take(struct side *from, void *buf, size_t max);

/*
 * Take a complete start-up frame that `from` has sent. Feed a start-up frame to `to`, with zeros as
 * private data.
 */
struct mpa_start side_next_frame(struct side *from);
void side_feed_frame(struct side *to, const struct mpa_start *start);

/* Give sides queue pairs. Call this before link_run(). */
void side_add_qp(struct side *side);
void rig_delete(struct rig *rig);
struct qp *rig_qp(struct rig *rig);
struct mr *rig_mr(struct rig *rig);
/* Post a Send of sixteen bytes. Returns the result of the post. */
int side_post_send(struct side *side, uint64_t wr_id);
int side_post_read(struct side *side, uint64_t wr_id); /* posts a Read of the other side's memory */
int side_post_recv(struct side *side, uint64_t wr_id);
/* Destroy the queue pair as its user does. The rig stays, because it has the completions. */
void side_detach_qp(struct side *side);
/* Take one completion. Returns its wr_id, or -1 if there is no completion. */
int64_t rig_poll(struct rig *rig, enum ibv_wc_status *status);

#define assert_state(side, state)                                                                  \
	assert_string_equal(stream_state_str(stream_state((side)->s)), #state)

#endif
