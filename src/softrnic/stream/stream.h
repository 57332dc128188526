/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h -- one connection from the first byte of its link to the last: MPA start-up (RFC 5044
 * s7, RFC 6581), then the queue pair, which the stream owns, then the orderly end.
 *
 * Pure: the input consists of bytes, the time, ends of jobs and the user's calls; the output is a
 * list of tasks. Every call that can change the stream fills a struct stream_update.
 * stream_perform() performs its tasks by the functions of the owner's struct stream_host. An update
 * lists all tasks that are due, so a task that was not performed is in the next update again.
 *
 * Every function is called with the stream's lock. Only stream_perform() calls the functions of the
 * host, except get_buf, put_buf and unacknowledged_ns: any call may call these three, and they must
 * not call the stream.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/shm_state.h"
#include "softrnic/rnic/qp.h"

/* limit of private data: librpma's length has 8 bits; siw and others refuse more than 251 */
#define STREAM_PDATA_MAX 255

enum stream_role { STREAM_INITIATOR, STREAM_RESPONDER };

/*
 * States. Each comment states what the stream does or awaits. stream_state_str() returns the names.
 */
/* clang-format off */
#define STREAM_STATES(X)                                                                           \
	X(IDLE)      /* no link yet */                                                             \
	X(DIALING)   /* initiator: the link is connecting */                                       \
	X(REQ_SENT)  /* initiator: waiting for the MPA reply */                                    \
	X(REQ_WAIT)  /* responder: waiting for the MPA request */                                  \
	X(REQ_RCVD)  /* responder: the user must accept or reject */                               \
	X(REP_SENT)  /* responder: the reply is being sent, or an RTR is awaited */                \
	X(HELLO)     /* both ends consented: waiting for the peer's HELLO */                       \
	X(LIVE)      /* full operation */                                                          \
	X(DRAINING)  /* after a disconnect: posted work is still sent */                           \
	X(CLOSING)   /* our FIN, a reject or a Terminate is sent; waiting for the peer's FIN */    \
	X(LINGERING) /* the end is reported; the peer may not have read all bytes */               \
	X(CLOSED)    /* no byte is sent or received any more */
/* clang-format on */
enum stream_state {
#define X(name) STREAM_##name,
	STREAM_STATES(X)
#undef X
};

enum stream_event {
	STREAM_EV_CONNECT_REQUEST, /* responder: the request has arrived */
	/* initiator of a meeting: the peer accepted the request; the HELLO follows */
	STREAM_EV_REPLIED,
	STREAM_EV_ESTABLISHED,
	/* status: -EACCES (the peer's program rejected the request), -ECONNREFUSED (no listener) or
	 * -ECONNRESET (the peer closed) */
	STREAM_EV_REJECTED,
	STREAM_EV_UNREACHABLE,   /* no answer within the time limit; status: -ETIMEDOUT */
	STREAM_EV_CONNECT_ERROR, /* any other error before ESTABLISHED; status: -errno */
	/* reported once after ESTABLISHED; reported without ESTABLISHED if the user disconnects
	 * directly after accept */
	STREAM_EV_DISCONNECTED,
	/* reported instead of DISCONNECTED if the peer or the path to it is gone; status: -errno */
	STREAM_EV_LOST,
	STREAM_EV_DEAD, /* responder: the stream ended before the user saw a request */
};

struct stream_params {
	uint16_t ird, ord; /* responder_resources, initiator_depth */
	uint8_t pdata_len;
	uint8_t pdata[STREAM_PDATA_MAX];
};

/* --- tasks ---------------------------------------------------------------------------------- */

/* Bits of stream_update.todo. Each comment names the call that performs the task. */
enum {
	STREAM_DO_EVENT = 1,     /* stream_take_event() */
	STREAM_DO_RESUME = 2,    /* stream_resume(): arrived bytes can now go to receives */
	STREAM_DO_RECEIVE = 4,   /* stream_rx_begin(), if the link has bytes */
	STREAM_DO_SEND = 8,      /* stream_tx_begin(), if the link takes bytes */
	STREAM_DO_JOB = 16,      /* stream_job_begin(): a write-back, digest or class is due */
	STREAM_DO_STOP_JOB = 32, /* stream_job_stopped(): the job in progress is no longer needed */
	STREAM_DO_FIN = 64,      /* close the link's sending direction, then stream_fin_sent() */
	STREAM_DO_CLOSE = 128,   /* close the link, then stream_link_closed() */
	STREAM_DO_REDIAL =
		/*
		 * stream_redial(): dial a new link, because the peer accepts only a simpler request
		 */
	256,
	/* handle an arrived message about another link, or the report that this end's SWITCH is
	 * sent */
	STREAM_DO_LINK = 512,
};

/* The owner's answer to an ORIGIN of the peer. */
enum stream_fence {
	STREAM_FENCE_DONE, /* no bytes of the named former connections are placed any more */
	STREAM_FENCE_WAIT, /* the named connections are being cut; stream_fence_end() follows */
	STREAM_FENCE_BUSY, /* the owner already processes too many ORIGINs, or has no memory */
	STREAM_FENCE_CUT,  /* a later connection has named this connection */
};

struct stream_update {
	unsigned todo;
	/* time at which to call stream_on_time(); 0: immediately, CLOCK_NEVER: not needed */
	uint64_t deadline;
};

enum stream_buf { STREAM_BUF_RX, STREAM_BUF_TX }; /* sizes: QP_RXBUF and QP_TXBUF bytes */

/* Functions of the stream's owner. A function that returns false means "not now"; the owner calls
 * stream_perform() again later. */
struct stream_host {
	void *(*get_buf)(void *owner, enum stream_buf kind); /* NULL: no memory */
	void (*put_buf)(void *owner, enum stream_buf kind, void *buf);
	/*
	 * Returns true if the stream keeps its empty buffers because it soon needs them again. NULL
	 * means that the stream never keeps them.
	 */
	bool (*keeps_bufs)(void *owner);
	/*
	 * Returns the time for which the peer's host has acknowledged none of the sent bytes; 0 if
	 * all bytes are acknowledged, or none were sent. Used while receiving is stalled, because
	 * no received byte can then show that the peer is alive.
	 */
	uint64_t (*unacknowledged_ns)(void *owner);
	/* Has the peer closed its sending direction? Used while receiving is stalled, because the
	 * peer's FIN may follow bytes that are not received yet. NULL: the stream only detects a
	 * FIN when it receives it. */
	bool (*has_ended)(void *owner);
	uint64_t (*now)(void *owner);
	/* Is the calling thread allowed to access the memory of the QP's regions? */
	bool (*may_touch)(void *owner);
	void (*event)(void *owner, enum stream_event event, int status);
	/* call stream_rx_begin() and stream_rx_end() once */
	bool (*receive)(void *owner, struct stream_update *u);
	/* call stream_tx_begin() and stream_tx_end() once */
	bool (*send)(void *owner, struct stream_update *u);
	bool (*start_job)(void *owner, struct stream_update *u);
	void (*stop_job)(void *owner);
	void (*fin)(void *owner);
	void (*close)(void *owner);
	void (*redial)(void *owner); /* close the link and dial again */
	/* Handle a message about another link. NULL: the owner has no other link. */
	void (*step)(void *owner, const struct qp_link_msg *msg, struct stream_update *u);
	void (*set_deadline)(void *owner, uint64_t at);
	/*
	 * The barrier's functions; NULL unless the configuration has takes_part. origin(), at an
	 * initiator, fills in the ORIGIN for the process that `instance` names, and sets whether
	 * the ORIGIN asks for an answer. It returns false if there is no memory. After each answer
	 * the stream calls first fenced() and then origin(). fenced() reports that no bytes of the
	 * connections in the answered ORIGIN are placed any more.
	 */
	bool (*origin)(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *origin);
	void (*fenced)(void *owner, const struct ext_origin *origin);
	/* Called at a responder when the peer's ORIGIN has arrived. */
	enum stream_fence (*identify)(void *owner, const struct ext_origin *origin);
};

/* defined in stream_impl.h for the files of this folder; allocated by stream_new() */
struct stream;

/* Perform all tasks in the update that are possible now. */
void stream_perform(struct stream *s, struct stream_update *u);
/* Fill in the update; the stream does not change. */
void stream_look(const struct stream *s, struct stream_update *u);
/* A cheaper form of stream_look(). It may be used if the last update was performed, and since then
 * only this has changed: the link has bytes (todo: STREAM_DO_RECEIVE), or requests were posted
 * (todo: STREAM_DO_SEND). */
void stream_expect(const struct stream *s, unsigned todo, struct stream_update *u);
/* Take the next event. Returns false if there is none. */
bool stream_take_event(struct stream *s, enum stream_event *event, int *status);

/* --- creation and end ----------------------------------------------------------------------- */

struct stream_config {
	enum stream_role role;
	bool crc;           /* request CRC */
	bool offer_consent; /* offer and accept softrnic's extensions */
	/* this end's user issues native flushes; if false, its Reads count as flushes */
	bool user_flushes;
	bool p2p;            /* initiator: request the peer-to-peer model in the first request */
	uint8_t revision;    /* initiator: first revision to try, 2 or 1 */
	uint64_t connect_ns; /* initiator: limit of dial and start-up together */
	uint64_t request_ns; /* responder: time limit for the peer's request to arrive */
	/* after a disconnect: report the end after this time at the latest */
	uint64_t drain_ns;
	uint32_t rings; /* offered version of the rings in shared memory; 0: none */
	/* Take part in the barrier between former connections and later ones (doc/wire.md s6,
	 * "Origin"). A responder's HELLO names this process by `instance`. */
	bool takes_part;
	uint8_t instance[EXT_ID_LEN];
	uint64_t liveness_ns; /* a consenting peer counts as lost after this silence; 0: never */
	bool meets;           /* set by stream_set_meets() */
	const struct stream_host *host;
	void *owner;
};

/*
 * The configuration that every connection of this software starts with. It offers all features on
 * which both ends can agree. The user announces native flushes separately. The caller sets limits,
 * host and owner.
 */
struct stream_config stream_config_of(enum stream_role role, bool crc, bool extensions);

int stream_new(const struct stream_config *cfg, struct stream **out);
/*
 * Declare that the stream belongs to a queue pair without an id, which connects to its peer by a
 * meeting (meeting.h). Must be called before connect, or before the link exists. The peer must
 * consent. An initiator waits for the reply without a time limit, because the peer's queue pair may
 * not be ready. The queue pair does not fail with its stream, except by a Terminate, an error of
 * this end or a silent peer.
 */
void stream_set_meets(struct stream *s);
bool stream_peer_consents(const struct stream *s); /* valid in REQ_RCVD */
/* Change the stream's owner. The new owner must own the stream's link then. No other call on the
 * stream may be in progress. */
void stream_move(struct stream *s, void *owner);
/* End a meeting's stream, on which no message of the user was sent, or whose posted requests the
 * user drops (RESET). Returns the queue pair in the state before the stream, with its posted
 * requests. A queue pair that has failed, or that has not taken over the stream, is only detached,
 * as by stream_detach_qp(). The update then lets the owner close the link. No receive and no job
 * may be in progress. */
struct qp *stream_take_back_qp(struct stream *s, struct stream_update *u);
/* Called instead of connect for a meeting, in state IDLE, if the queue pair is its own peer. Such a
 * link has no start-up frames, and the HELLO returns to its sender. Returns 0 or -errno. */
int stream_join_self(struct stream *s, const struct stream_params *params, uint64_t now,
		     struct stream_update *u);
/* are work requests of the send queue unfinished? */
bool stream_has_posted(const struct stream *s);
/* Has either end begun a message of its user on the stream? */
bool stream_was_used(const struct stream *s);
void stream_delete(struct stream *s); /* the QP must be detached before */
enum stream_state stream_state(const struct stream *s);
enum stream_role stream_role(const struct stream *s);
const char *stream_state_str(enum stream_state state);
/* The peer's parameters, from the request (at a responder) or from the reply (at an initiator). IRD
 * and ORD are converted to this end's view. */
const struct stream_params *stream_remote(const struct stream *s);
/* The agreed parameters; valid from LIVE on. */
const struct qp_stream *stream_agreed(const struct stream *s);

/* Replace limits of the configuration. Both functions must be called before connect or accept, and
 * return 0 or -EINVAL. */
int stream_set_limits(struct stream *s, uint64_t connect_ns, uint64_t liveness_ns);
/*
 * user_flushes is true if this end's user issues native flushes; if false, its Reads count as
 * flushes (doc/wire.md s3).
 */
int stream_set_user_flushes(struct stream *s, bool user_flushes);

/* --- the user's calls ----------------------------------------------------------------------- */

/*
 * Each call returns 0 or -errno (-EINVAL: the state or a value is invalid). If the peer has closed
 * before its request is answered, accept returns -ECONNRESET and reject returns 0. An owner that
 * drops a request must reject it; otherwise the peer dials again.
 */
int stream_connect(struct stream *s, const struct stream_params *params, uint64_t now,
		   struct stream_update *u); /* the state becomes DIALING, and the owner dials */
int stream_accept(struct stream *s, const struct stream_params *params, uint32_t mss, uint64_t now,
		  struct stream_update *u);
int stream_reject(struct stream *s, const void *pdata, uint8_t len, uint64_t now,
		  struct stream_update *u);
int stream_disconnect(struct stream *s, uint64_t now, struct stream_update *u);
/* Report UNREACHABLE, unless the outcome of the start-up is already known. */
int stream_cancel(struct stream *s, struct stream_update *u);
/* ends immediately, without an event */
void stream_abort(struct stream *s, struct stream_update *u);

/* Responder: called when all connections that identify() had to cut are closed. Sends the answer to
 * the peer. */
void stream_fence_end(struct stream *s, uint64_t now, struct stream_update *u);
/*
 * Called when a later connection has named this connection as given up: end the stream immediately,
 * and place no more bytes.
 */
void stream_cut_off(struct stream *s, struct stream_update *u);
/*
 * For an initiator, after the end of the connection: returns true if the target certainly places no
 * more bytes of this connection. This is certain if no operation of the user was sent, if the
 * target has sent a Terminate, or if the target's FIN proves that its queue pair had ended before.
 */
bool stream_is_over(const struct stream *s);

/* --- the queue pair of the stream ----------------------------------------------------------- */

/* Must be called before connect or accept. The stream owns the queue pair until it is detached. */
void stream_attach_qp(struct stream *s, struct qp *qp);
/*
 * Return the QP to the caller, in state ERR if it was started. A stream in operation ends, and
 * reports DISCONNECTED unless its end has been reported already. No receive and no job may be in
 * progress.
 */
struct qp *stream_detach_qp(struct stream *s, struct stream_update *u);
struct qp *stream_qp(const struct stream *s); /* NULL: no queue pair is attached */

/* These call qp_post_send(), qp_post_recv() and qp_post_list(). If u is NULL, the caller must call
 * stream_look() afterwards. Exceptions: after a send, stream_may_wait() permits a delay; after a
 * receive, stream_needs_nothing() returns true. */
int stream_post_send(struct stream *s, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		     struct stream_update *u);
int stream_post_recv(struct stream *s, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		     struct stream_update *u);
int stream_post_list(struct stream *s, const struct vext_wr *wrs, int n, int *posted,
		     struct stream_update *u);
/* Is all pending output allowed to wait for later requests? See qp_tx_may_wait(). */
enum qp_patience stream_may_wait(const struct stream *s);
/* Is the stream in full operation, and does qp_owes_ack_only() hold? */
bool stream_owes_ack_only(const struct stream *s);
/* Called after a receive was posted: returns true if nothing waited for the receive, and no error
 * occurred. */
bool stream_needs_nothing(const struct stream *s);
/* Deliver arrived bytes to receives of the queue pair or of its SRQ. */
void stream_resume(struct stream *s, struct stream_update *u);
/* Called when the user moves the queue pair to ERR. */
void stream_fail_qp(struct stream *s, struct stream_update *u);
/* Calls qp_limit_requests(). */
void stream_limit_requests(struct stream *s, uint32_t ord, struct stream_update *u);
/* Called if the peer of the queue pair did not connect in time: end the oldest request with
 * RETRY_EXC_ERR. */
void stream_give_up_qp(struct stream *s, struct stream_update *u);
/* Calls qp_give_away(). */
void stream_give_away(struct stream *s, struct stream_update *u);
/* Called before the region is deregistered: see qp_detach_mr(). */
void stream_detach_mr(struct stream *s, struct mr *mr, bool forget, struct stream_update *u);

/* The following functions need an attached queue pair, except stream_qp_is_failed() and
 * stream_requests(). */
/* Calls qp_set_taker(). Does nothing without a queue pair. */
void stream_set_taker(struct stream *s, struct cq_taker *taker);
bool stream_qp_is_failed(const struct stream *s);
enum ibv_qp_state stream_qp_state(const struct stream *s);
const struct qp_counters *stream_counters(const struct stream *s);
struct qp_news stream_news(const struct stream *s); /* all zeros if there is no queue pair */
uint32_t stream_caps(const struct stream *s);       /* VEXT_CAP_*; valid after the start */
/* number of the peer's requests that have no answer yet */
uint32_t stream_requests(const struct stream *s);
bool stream_is_local_fault(const struct stream *s); /* the first error was local */
/* Can the next send load from memory that may wait for a file system? Returns true if this is
 * unknown. */
bool stream_send_can_stall(struct stream *s);

/*
 * The owner runs one job at a time. stream_job_begin() needs a filled update and changes it; it
 * returns false if no job is due. If a job is abandoned, it ends immediately for the queue pair,
 * with -EFAULT, the same error as for a range past the end of a truncated file. The next job begins
 * only after the owner has reported the end of the abandoned one.
 */
bool stream_job_begin(struct stream *s, struct qp_job *job, struct stream_update *u);
void stream_job_end(struct stream *s, int status, uint64_t now, struct stream_update *u);
void stream_job_abandon(struct stream *s, uint64_t now, struct stream_update *u);
void stream_job_stopped(struct stream *s, struct stream_update *u);
bool stream_awaits_job(const struct stream *s); /* a job is in progress and was not abandoned */

/* --- the link of the stream ----------------------------------------------------------------- */

void stream_on_dialed(struct stream *s, uint32_t mss, uint64_t now, struct stream_update *u);
/* `err` is a positive errno value. */
void stream_on_dial_failed(struct stream *s, int err, uint64_t now, struct stream_update *u);
/* Responder: called when an inbound link is connected. */
void stream_on_incoming(struct stream *s, uint64_t now, struct stream_update *u);

/*
 * Memory for the next received bytes. The link uses this memory from stream_rx_begin() to
 * stream_rx_end(), which must be the next call on the stream; registered memory cannot be
 * deregistered in between. stream_rx_begin() returns false if nothing can be received now; the
 * owner must not call stream_rx_end() then.
 */
struct stream_rx {
	struct iovec iov[QP_RX_IOV];
	int n;
	size_t direct; /* number of bytes at the start of `iov` that are registered memory */
};
bool stream_rx_begin(struct stream *s, struct stream_rx *rx, struct stream_update *u);
/*
 * got > 0: number of received bytes. 0: the peer has closed its sending direction. -EAGAIN, -EINTR:
 * nothing was received. -EFAULT: the memory is gone. Other errors: the link broke. The owner may
 * also report a broken link or the peer's close without a stream_rx_begin() before.
 */
void stream_rx_end(struct stream *s, ssize_t got, uint64_t now, struct stream_update *u);
/*
 * Called when the peer has given up the connection: from now on ignore all bytes except a Terminate
 * (qp_rx_give_up()). Returns false if the next bytes do not belong to the queue pair; the owner
 * need not receive them then.
 */
bool stream_rx_give_up(struct stream *s);
/*
 * These functions replace a begin and an end if the link is in memory.
 *
 * stream_rx_in_place() processes bytes in memory that the peer can write to, and returns their
 * number. If it returns 0, the owner must receive the bytes into its own memory instead.
 *
 * stream_tx_in_place() builds short messages in such memory, and returns their length. The link
 * must send all of these bytes, and the owner must then call stream_tx_in_place_end(). If
 * stream_tx_in_place() returns 0, the owner must call stream_tx_begin() instead.
 *
 * None of these fills in an update. If stream_is_calm() returns true afterwards, no task is due;
 * this is so after most messages. Otherwise the owner must call stream_in_place_end(), or
 * stream_look() if nothing was received.
 */
size_t stream_rx_in_place(struct stream *s, const void *bytes, size_t len);
size_t stream_tx_in_place(struct stream *s, void *to, size_t room);
void stream_tx_in_place_end(struct stream *s, size_t len);
bool stream_is_calm(const struct stream *s);
void stream_in_place_end(struct stream *s, struct stream_update *u);
/* Collect bytes to send. Returns the number of entries, or 0 if there is nothing to send. */
int stream_tx_begin(struct stream *s, struct iovec iov[QP_TX_IOV], struct stream_update *u);
/* `sent` is the number of bytes that the link accepted, -EAGAIN, -EINTR, -EFAULT, or the error that
 * broke the link. If the function needs the time, the update asks for stream_on_time(). */
void stream_tx_end(struct stream *s, ssize_t sent, struct stream_update *u);
void stream_fin_sent(struct stream *s, struct stream_update *u);
void stream_link_closed(struct stream *s, struct stream_update *u);
/* Called before the owner dials again. */
void stream_redial(struct stream *s, struct stream_update *u);
/* Are both FINs exchanged, so that the link may be closed? If not, the link must be reset, so that
 * no byte that was sent before arrives later. */
bool stream_is_orderly(const struct stream *s);
/* Was a request posted that changes the peer's memory, and is it not certain that the change is
 * done? It is certain after an answer or an orderly end. Otherwise the bytes may still be on their
 * way. */
bool stream_leaves_writes(const struct stream *s);
/* Returns true if the stream takes no bytes until a receive is posted. It must then check that the
 * peer is alive. */
bool stream_is_stalled(const struct stream *s);

/*
 * Moving the stream to another link (doc/wire.md s6, "Link"). In full operation the owner may agree
 * on another link with the peer if both ends offer rings. The owner sends its messages by
 * stream_link_post(). The host's step() gets the peer's messages, and the report that this end's
 * SWITCH is sent. After a SWITCH no byte is sent in this direction until the owner reports that the
 * other link is ready.
 */
/* do both ends offer rings, and is the stream in full operation? */
bool stream_offers_rings(const struct stream *s);
void stream_link_post(struct stream *s, enum ext_link_step step, const uint8_t *token,
		      struct stream_update *u); /* token NULL: send zeros */
void stream_link_tx_switched(struct stream *s, struct stream_update *u);
void stream_link_rx_switched(struct stream *s, struct stream_update *u);
/* refuse the SWITCH of the peer */
void stream_link_refuse(struct stream *s, struct stream_update *u);
/* The address of the word that qp_watch_given_up() reads, which belongs to the other link. It must
 * stay readable until a call with NULL. */
void stream_watch_given_up(struct stream *s, const atomic_uint *word);
/* record the state for the counters */
void stream_link_note(struct stream *s, enum shm_state state);

/* The deadline of the last update. */
uint64_t stream_deadline(const struct stream *s);
/* Must be called after all received bytes are processed, because the function judges whether the
 * peer is alive. */
void stream_on_time(struct stream *s, uint64_t now, struct stream_update *u);

#endif
