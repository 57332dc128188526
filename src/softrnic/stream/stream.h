/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h -- one connection from the first byte of its link to the last: MPA start-up (RFC 5044
 * s7, RFC 6581), then the queue pair, which the stream owns, then the orderly end.
 *
 * Pure: bytes, time, ends of jobs and the user's calls are the input, and a list of tasks is the
 * output. Every call that can change the stream fills a struct stream_update. stream_perform()
 * performs its tasks by the functions of the owner's struct stream_host. An update lists all tasks
 * that are due, so a task that was not performed is in the next update again.
 *
 * Every function is called with the stream's lock. Only stream_perform() calls the functions of the
 * host, except get_buf, put_buf and unacknowledged_ns: any call may call these, and they must not
 * call back.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/shm_state.h"
#include "softrnic/rnic/qp.h"

#define STREAM_PDATA_MAX 255 /* librpma's length is 8 bits; siw and others refuse above 251 */

enum stream_role { STREAM_INITIATOR, STREAM_RESPONDER };

/* States and their next events; stream_state_str() names them. */
/* clang-format off */
#define STREAM_STATES(X)                                                                           \
	X(IDLE)      /* no link yet */                                                             \
	X(DIALING)   /* initiator: the link is connecting */                                       \
	X(REQ_SENT)  /* initiator: waiting for the MPA reply */                                    \
	X(REQ_WAIT)  /* responder: waiting for the MPA request */                                  \
	X(REQ_RCVD)  /* responder: the user has to accept or reject */                             \
	X(REP_SENT)  /* responder: the reply is on its way out, or a RTR is awaited */             \
	X(HELLO)     /* consenting peers: waiting for the peer's HELLO */                          \
	X(LIVE)      /* full operation */                                                          \
	X(DRAINING)  /* disconnect: posted work still goes out */                                  \
	X(CLOSING)   /* our FIN, a reject or a Terminate is sent; waiting for the peer's FIN */    \
	X(LINGERING) /* the end is reported; the peer may not have read all that was sent */       \
	X(CLOSED)    /* nothing more will come */
/* clang-format on */
enum stream_state {
#define X(name) STREAM_##name,
	STREAM_STATES(X)
#undef X
};

enum stream_event {
	STREAM_EV_CONNECT_REQUEST, /* responder: the request has arrived */
	STREAM_EV_REPLIED, /* an initiator that meets: request accepted, the HELLO follows */
	STREAM_EV_ESTABLISHED,
	STREAM_EV_REJECTED,      /* status: the peer's program rejected it: -EACCES; no listener:
			       -ECONNREFUSED; the peer closed: -ECONNRESET */
	STREAM_EV_UNREACHABLE,   /* no answer in time; status: -ETIMEDOUT */
	STREAM_EV_CONNECT_ERROR, /* anything else before ESTABLISHED; status: -errno */
	STREAM_EV_DISCONNECTED,  /* once, after ESTABLISHED; without ESTABLISHED after a
				    disconnect directly after accept */
	STREAM_EV_LOST,          /* instead: the peer or the way to it is gone; status: -errno */
	STREAM_EV_DEAD,          /* responder: the stream ended before the user saw a request */
};

struct stream_params {
	uint16_t ird, ord; /* responder_resources, initiator_depth */
	uint8_t pdata_len;
	uint8_t pdata[STREAM_PDATA_MAX];
};

/* --- tasks ---------------------------------------------------------------------------------- */

/* Bits of stream_update.todo, each with the call that performs it. */
enum {
	STREAM_DO_EVENT = 1,   /* stream_take_event() */
	STREAM_DO_RESUME = 2,  /* stream_resume(): arrived bytes can now go to receives */
	STREAM_DO_RECEIVE = 4, /* stream_rx_begin(), if the link has bytes */
	STREAM_DO_SEND = 8,    /* stream_tx_begin(), if the link takes bytes */
	STREAM_DO_JOB = 16,    /* stream_job_begin(): a write-back, digest or class is due */
	STREAM_DO_STOP_JOB =
		32,            /* stream_job_stopped(): the one under way is not needed any more */
	STREAM_DO_FIN = 64,    /* shut the link's sending half, then stream_fin_sent() */
	STREAM_DO_CLOSE = 128, /* close the link, then stream_link_closed() */
	STREAM_DO_REDIAL =
		256, /* stream_redial(): a new link; the peer takes a plainer request only */
	STREAM_DO_LINK = 512, /* a message of the change to another link has arrived, or is sent */
};

/* The owner's answer to an ORIGIN of the peer. */
enum stream_fence {
	STREAM_FENCE_DONE, /* no bytes of the named former connections are placed any more */
	STREAM_FENCE_WAIT, /* the named connections are being cut; stream_fence_end() follows */
	STREAM_FENCE_BUSY, /* the owner cannot do this now */
	STREAM_FENCE_CUT,  /* a later connection has named this connection */
};

struct stream_update {
	unsigned todo;
	uint64_t deadline; /* time of the next stream_on_time(); 0: at once, CLOCK_NEVER: none */
};

enum stream_buf { STREAM_BUF_RX, STREAM_BUF_TX }; /* of QP_RXBUF and QP_TXBUF bytes */

/* Functions of the stream's owner. False means "not now": the owner performs again later. */
struct stream_host {
	void *(*get_buf)(void *owner, enum stream_buf kind); /* NULL: no memory */
	void (*put_buf)(void *owner, enum stream_buf kind, void *buf);
	/*
	 * The buffers stay with the stream for now, because it soon needs them again; NULL: never.
	 */
	bool (*keeps_bufs)(void *owner);
	/*
	 * The time for which the peer's host has left sent bytes unacknowledged; 0: all bytes are
	 * acknowledged, or none were sent. Used while the receive is stalled: then no received byte
	 * can show that the peer is alive.
	 */
	uint64_t (*unacknowledged_ns)(void *owner);
	/* Has the peer ended its sending? Used while the receive is stalled: the peer's FIN may
	 * follow bytes that are not received yet. NULL: only a receive shows the FIN. */
	bool (*has_ended)(void *owner);
	uint64_t (*now)(void *owner);
	/* May the calling thread access the memory of the QP's regions? */
	bool (*may_touch)(void *owner);
	void (*event)(void *owner, enum stream_event event, int status);
	bool (*receive)(void *owner, struct stream_update *u); /* one rx_begin and rx_end */
	bool (*send)(void *owner, struct stream_update *u);    /* one tx_begin and tx_end */
	bool (*start_job)(void *owner, struct stream_update *u);
	void (*stop_job)(void *owner);
	void (*fin)(void *owner);
	void (*close)(void *owner);
	void (*redial)(void *owner); /* close the link and dial again */
	/* Handle a message about another link. NULL: the owner has no other link. */
	void (*step)(void *owner, const struct qp_link_msg *msg, struct stream_update *u);
	void (*set_deadline)(void *owner, uint64_t at);
	/*
	 * The barrier; NULL unless the configuration takes part. Initiator: fill in the ORIGIN for
	 * the process that `instance` names, and whether it asks for an answer. False: no memory.
	 * After each answer, first fenced() and then origin() is called. fenced(): no bytes of the
	 * connections in the answered ORIGIN are placed any more.
	 */
	bool (*origin)(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *origin);
	void (*fenced)(void *owner, const struct ext_origin *origin);
	/* Responder: the peer's ORIGIN has arrived. */
	enum stream_fence (*identify)(void *owner, const struct ext_origin *origin);
};

struct stream; /* in stream_impl.h for this room; allocated by stream_new() */

/* Perform all tasks that are due and possible now. */
void stream_perform(struct stream *s, struct stream_update *u);
/* Fill the update without changing anything. */
void stream_look(const struct stream *s, struct stream_update *u);
/* As stream_look(), but cheaper. The last update was performed, and since then only this has
 * changed: the link has bytes (STREAM_DO_RECEIVE), or requests were posted (STREAM_DO_SEND). */
void stream_expect(const struct stream *s, unsigned todo, struct stream_update *u);
/* Take the next event. Returns false if there is none. */
bool stream_take_event(struct stream *s, enum stream_event *event, int *status);

/* --- life ----------------------------------------------------------------------------------- */

struct stream_config {
	enum stream_role role;
	bool crc;            /* request CRC */
	bool offer_consent;  /* offer and accept our extensions */
	bool user_flushes;   /* our user issues native flushes; if not, its Reads are flushes */
	bool p2p;            /* initiator: request the peer-to-peer model at once */
	uint8_t revision;    /* initiator: first revision to try, 2 or 1 */
	uint64_t connect_ns; /* initiator: limit of dial and start-up together */
	uint64_t request_ns; /* responder: time limit of the peer's request */
	uint64_t drain_ns;   /* disconnect: the end is reported after this time at the latest */
	uint32_t rings;      /* offered version of the rings in shared memory; 0: none */
	/* Take part in the barrier between former connections and later ones (doc/wire.md s6,
	 * "Origin"). instance: a responder's HELLO names this process by it. */
	bool takes_part;
	uint8_t instance[EXT_ID_LEN];
	uint64_t liveness_ns; /* a consenting peer counts as lost after this silence; 0: never */
	bool meets;           /* stream_set_meets() */
	const struct stream_host *host;
	void *owner;
};

/*
 * The configuration with which this software begins every connection. It offers all that both ends
 * can agree on. The user announces native flushes separately. The caller sets limits, host and
 * owner.
 */
struct stream_config stream_config_of(enum stream_role role, bool crc, bool extensions);

int stream_new(const struct stream_config *cfg, struct stream **out);
/*
 * The stream belongs to a queue pair without an id, which meets its peer by itself (meeting.h). To
 * be called before connect, or before the link exists. The peer must consent. An initiator waits
 * for the reply without a time limit, because the peer's queue pair may not be ready. If the stream
 * ends before full operation, or while nothing is posted, the queue pair does not fail.
 */
void stream_set_meets(struct stream *s);
bool stream_peer_consents(const struct stream *s); /* in REQ_RCVD */
/* Change the stream's owner, which then has the link. No other call on the stream may be in
 * progress. */
void stream_move(struct stream *s, void *owner);
/* End an unused stream of a meeting: return the queue pair as it was before the stream, with its
 * posted requests, and let the link be closed. No receive and no job may be in progress. */
struct qp *stream_take_back_qp(struct stream *s, struct stream_update *u);
/* Instead of connect, for a meeting, in IDLE: the queue pair is its own peer. The link has no
 * start-up frames, and the HELLO returns to its sender. Returns 0 or -errno. */
int stream_join_self(struct stream *s, const struct stream_params *params, uint64_t now,
		     struct stream_update *u);
bool stream_has_posted(const struct stream *s); /* sends without a completion */
/* Has either end begun a message of its user on the stream? */
bool stream_was_used(const struct stream *s);
void stream_delete(struct stream *s); /* its QP must be detached */
enum stream_state stream_state(const struct stream *s);
enum stream_role stream_role(const struct stream *s);
const char *stream_state_str(enum stream_state state);
/* The peer's parameters from its request (responder) or reply (initiator); IRD and ORD from our
 * side's view. */
const struct stream_params *stream_remote(const struct stream *s);
/* The agreed parameters; valid from LIVE on. */
const struct qp_stream *stream_agreed(const struct stream *s);

/* Replace the configuration's limits. Both functions are for the time before connect or accept, and
 * return 0 or -EINVAL. */
int stream_set_limits(struct stream *s, uint64_t connect_ns, uint64_t liveness_ns);
/*
 * user_flushes: our user issues native flushes; otherwise its Reads are flushes (doc/wire.md s3).
 */
int stream_set_user_flushes(struct stream *s, bool user_flushes);

/* --- the user's calls ----------------------------------------------------------------------- */

/*
 * Each returns 0 or -errno (-EINVAL: the state or a value is invalid). If the peer closed before
 * the answer to its request, accept returns -ECONNRESET and reject 0. A request that is dropped
 * must be rejected: otherwise the peer dials again.
 */
int stream_connect(struct stream *s, const struct stream_params *params, uint64_t now,
		   struct stream_update *u); /* -> DIALING; the owner dials */
int stream_accept(struct stream *s, const struct stream_params *params, uint32_t mss, uint64_t now,
		  struct stream_update *u);
int stream_reject(struct stream *s, const void *pdata, uint8_t len, uint64_t now,
		  struct stream_update *u);
int stream_disconnect(struct stream *s, uint64_t now, struct stream_update *u);
/* Report UNREACHABLE, unless the start-up has already had an outcome. */
int stream_cancel(struct stream *s, struct stream_update *u);
void stream_abort(struct stream *s, struct stream_update *u); /* at once; no event */

/* Responder: the connections that identify() had to cut are closed; send the answer to the peer. */
void stream_fence_end(struct stream *s, uint64_t now, struct stream_update *u);
/* A later connection has named this one: it ends at once, and places no byte any more. */
void stream_cut_off(struct stream *s, struct stream_update *u);
/*
 * Initiator, after the end of the connection: returns whether the target certainly places none of
 * its bytes any more. This is certain if no operation of the user was sent, if the target has sent
 * a Terminate, or if the target's FIN proves that its queue pair had ended before.
 */
bool stream_is_over(const struct stream *s);

/* --- its queue pair ------------------------------------------------------------------------- */

/* To be called before connect or accept. The stream owns the queue pair until it is detached. */
void stream_attach_qp(struct stream *s, struct qp *qp);
/* Return the QP to the caller, failed if it was started. A stream in operation ends (with
 * DISCONNECTED, unless already reported). No receive and no job may be in progress. */
struct qp *stream_detach_qp(struct stream *s, struct stream_update *u);
struct qp *stream_qp(const struct stream *s); /* NULL: none is attached */

/* As qp_post_send(), qp_post_recv() and qp_post_list(). With u NULL, stream_look() must follow,
 * except if stream_may_wait(), or, after a receive, if stream_needs_nothing(). */
int stream_post_send(struct stream *s, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		     struct stream_update *u);
int stream_post_recv(struct stream *s, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		     struct stream_update *u);
int stream_post_list(struct stream *s, const struct vext_wr *wrs, int n, int *posted,
		     struct stream_update *u);
/* Whether all pending output may wait for later requests: see qp_tx_may_wait(). */
enum qp_patience stream_may_wait(const struct stream *s);
/* Whether the stream is in full operation and qp_owes_ack_only() holds. */
bool stream_owes_ack_only(const struct stream *s);
/* To be called after posting a receive: nothing waited for the receive, and no error occurred. */
bool stream_needs_nothing(const struct stream *s);
/* Deliver arrived bytes to receives of the queue pair or of its SRQ. */
void stream_resume(struct stream *s, struct stream_update *u);
/* The user fails the queue pair. */
void stream_fail_qp(struct stream *s, struct stream_update *u);
/* Calls qp_limit_requests(). */
void stream_limit_requests(struct stream *s, uint32_t ord, struct stream_update *u);
/* The peer of the queue pair did not connect in time: end the oldest request with RETRY_EXC_ERR. */
void stream_give_up_qp(struct stream *s, struct stream_update *u);
/* Calls qp_give_away(). */
void stream_give_away(struct stream *s, struct stream_update *u);
/* The region is about to end: see qp_detach_mr(). */
void stream_detach_mr(struct stream *s, struct mr *mr, bool forget, struct stream_update *u);

/* Functions on the queue pair, which must be attached, except for stream_qp_is_failed() and
 * stream_requests(). */
/* As qp_set_taker(); has no effect without a queue pair. */
void stream_set_taker(struct stream *s, struct cq_taker *taker);
bool stream_qp_is_failed(const struct stream *s);
enum ibv_qp_state stream_qp_state(const struct stream *s);
const struct qp_counters *stream_counters(const struct stream *s);
struct qp_news stream_news(const struct stream *s); /* zeros: there is no queue pair */
uint32_t stream_caps(const struct stream *s);       /* VEXT_CAP_*; after the start */
uint32_t stream_requests(const struct stream *s);   /* requests of the peer without an answer */
bool stream_is_local_fault(const struct stream *s); /* the first error was local */
/* Whether a send may load from memory that can wait for a file system. When in doubt, true. */
bool stream_send_can_stall(struct stream *s);

/*
 * Jobs run one at a time. stream_job_begin() changes a filled update, and returns false if no job
 * is due. For the queue pair an abandoned job ends with -EFAULT, as for a range past the end of a
 * truncated file. The next job begins only after its real end.
 */
bool stream_job_begin(struct stream *s, struct qp_job *job, struct stream_update *u);
void stream_job_end(struct stream *s, int status, uint64_t now, struct stream_update *u);
void stream_job_abandon(struct stream *s, uint64_t now, struct stream_update *u);
void stream_job_stopped(struct stream *s, struct stream_update *u);
bool stream_awaits_job(const struct stream *s); /* a job is in progress and was not abandoned */

/* --- its link ------------------------------------------------------------------------------- */

void stream_on_dialed(struct stream *s, uint32_t mss, uint64_t now, struct stream_update *u);
/* err: a positive errno. */
void stream_on_dial_failed(struct stream *s, int err, uint64_t now, struct stream_update *u);
/* Responder: the link is connected. */
void stream_on_incoming(struct stream *s, uint64_t now, struct stream_update *u);

/*
 * Room for the next bytes. The link uses this memory from stream_rx_begin() to stream_rx_end(),
 * which is the next call on the stream; registered memory is held for this time. Returns false if
 * nothing is to be received now; then no end follows.
 */
struct stream_rx {
	struct iovec iov[QP_RX_IOV];
	int n;
	size_t direct; /* length of the registered memory at the start of the room */
};
bool stream_rx_begin(struct stream *s, struct stream_rx *rx, struct stream_update *u);
/*
 * got > 0: number of received bytes. 0: the peer has ended its sending. -EAGAIN, -EINTR: nothing
 * was received. -EFAULT: the memory is gone. Other errors: the link broke. A broken link and the
 * end may be reported without a begin, too.
 */
void stream_rx_end(struct stream *s, ssize_t got, uint64_t now, struct stream_update *u);
/*
 * The peer has given up the connection. Of all later bytes only a Terminate counts
 * (qp_rx_give_up()). Returns false if the bytes are not the queue pair's: then the owner need not
 * receive them.
 */
bool stream_rx_give_up(struct stream *s);
/*
 * Instead of a begin and an end, over a link in memory. stream_rx_in_place() processes bytes in
 * memory that the peer can write to, and returns their number. 0: receive the bytes into own memory
 * instead. stream_tx_in_place() builds short messages in such memory, and returns their length. The
 * link sends all of them, and then stream_tx_in_place_end() must follow. 0: stream_tx_begin() must
 * follow.
 *
 * None of them fills an update. If stream_is_calm() afterwards, no task is due, as after most
 * messages. Otherwise stream_in_place_end() must follow, or stream_look() if nothing was received.
 */
size_t stream_rx_in_place(struct stream *s, const void *bytes, size_t len);
size_t stream_tx_in_place(struct stream *s, void *to, size_t room);
void stream_tx_in_place_end(struct stream *s, size_t len);
bool stream_is_calm(const struct stream *s);
void stream_in_place_end(struct stream *s, struct stream_update *u);
/* Collect bytes to send. Returns the number of entries; 0: nothing to send. */
int stream_tx_begin(struct stream *s, struct iovec iov[QP_TX_IOV], struct stream_update *u);
/* sent: number of bytes that the link accepted, -EAGAIN, -EINTR, -EFAULT, or the error that broke
 * the link. If the time matters, the update requests stream_on_time(). */
void stream_tx_end(struct stream *s, ssize_t sent, struct stream_update *u);
void stream_fin_sent(struct stream *s, struct stream_update *u);
void stream_link_closed(struct stream *s, struct stream_update *u);
/* The owner is about to dial again. */
void stream_redial(struct stream *s, struct stream_update *u);
/* Both FINs are exchanged, so the link may be closed. Otherwise it must be reset, so that no byte
 * that was sent before arrives later. */
bool stream_is_orderly(const struct stream *s);
/* A posted request changes the peer's memory, and neither an answer nor an orderly end proves that
 * it is done: its bytes may be on their way. */
bool stream_leaves_writes(const struct stream *s);
/* The stream takes no bytes until a receive is posted, and has to check that the peer is alive. */
bool stream_is_stalled(const struct stream *s);

/*
 * Another link for the same stream (doc/wire.md s6, "Link"). The owner may agree on one with the
 * peer if both ends offer rings, from full operation on. The owner sends its messages by
 * stream_link_post(). The host's step() receives the peer's messages, and the end of the owner's
 * own SWITCH. After a SWITCH no byte moves in that direction until the owner reports that the other
 * link is ready.
 */
bool stream_offers_rings(const struct stream *s); /* both ends offer rings, in full operation */
void stream_link_post(struct stream *s, enum ext_link_step step, const uint8_t *token,
		      struct stream_update *u); /* token NULL: zeros */
void stream_link_tx_switched(struct stream *s, struct stream_update *u);
void stream_link_rx_switched(struct stream *s, struct stream_update *u);
void stream_link_refuse(struct stream *s, struct stream_update *u); /* the peer's SWITCH */
/* The other link's word for qp_watch_given_up(). It must stay readable until a call with NULL. */
void stream_watch_given_up(struct stream *s, const atomic_uint *word);
void stream_link_note(struct stream *s, enum shm_state state); /* for the counters */

/* The deadline of the last update. */
uint64_t stream_deadline(const struct stream *s);
/* To be called after all received bytes are processed: only then liveness can be judged. */
void stream_on_time(struct stream *s, uint64_t now, struct stream_update *u);

#endif
