/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h -- one connection from the first byte of its link to the last: MPA start-up
 * (RFC 5044 s7, RFC 6581), then the queue pair, which the stream owns, then the orderly end.
 *
 * Pure: bytes, time, ends of jobs and the user's calls go in, and what is to be done comes out.
 * Every call that can change something fills a struct stream_update. stream_perform() does what it
 * says, by the functions of the owner's struct stream_host. An update describes the whole state and
 * not a difference, so what one update asked for and was not done is in the next one again.
 *
 * Every function is called with the stream's lock. The functions of the host are called from
 * stream_perform(), but for get_buf, put_buf and unacknowledged_ns, which may be called from inside
 * any call and must not call back.
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

/* States and what they wait for; stream_state_str() names them. */
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
	STREAM_EV_CONNECT_REQUEST, /* responder: request and private data are in */
	STREAM_EV_REPLIED, /* initiator that meets: the request was accepted, and the HELLO follows */
	STREAM_EV_ESTABLISHED,
	STREAM_EV_REJECTED, /* by the application there: -EACCES; by its host, without a listener:
			       -ECONNREFUSED; by closing: -ECONNRESET */
	STREAM_EV_UNREACHABLE,   /* no answer in time; status: -ETIMEDOUT */
	STREAM_EV_CONNECT_ERROR, /* anything else before ESTABLISHED; status: -errno */
	STREAM_EV_DISCONNECTED,  /* once, after ESTABLISHED; or, disconnected right after accept,
				    without it */
	STREAM_EV_LOST,          /* instead: the peer, or the way to it, vanished; status: -errno */
	STREAM_EV_DEAD,          /* responder: gone before the user saw a request */
};

struct stream_params {
	uint16_t ird, ord; /* responder_resources, initiator_depth */
	uint8_t pdata_len;
	uint8_t pdata[STREAM_PDATA_MAX];
};

/* --- what is to be done --------------------------------------------------------------------- */

/* Bits of stream_update.todo, and the call that takes each. */
enum {
	STREAM_DO_EVENT = 1,   /* stream_take_event() */
	STREAM_DO_RESUME = 2,  /* stream_resume(): what is here already goes to receives */
	STREAM_DO_RECEIVE = 4, /* stream_rx_begin(), if the link has bytes */
	STREAM_DO_SEND = 8,    /* stream_tx_begin(), if the link takes bytes */
	STREAM_DO_JOB = 16,    /* stream_job_begin(): a write-back, a digest or a class is due */
	STREAM_DO_STOP_JOB =
		32,            /* stream_job_stopped(): the one under way is not needed any more */
	STREAM_DO_FIN = 64,    /* shut the link's sending half, then stream_fin_sent() */
	STREAM_DO_CLOSE = 128, /* close the link, then stream_link_closed() */
	STREAM_DO_REDIAL =
		256, /* stream_redial(): a new link; the peer takes a plainer request only */
	STREAM_DO_LINK = 512, /* a step on the way to another link has come, or is sent */
};

/* What the owner makes of an ORIGIN of the peer's. */
enum stream_fence {
	STREAM_FENCE_DONE, /* nothing of the former connections that it names is placed any more */
	STREAM_FENCE_WAIT, /* they are being cut: stream_fence_end() */
	STREAM_FENCE_BUSY, /* it cannot be done now */
	STREAM_FENCE_CUT,  /* this connection itself is one that a later one has named */
};

struct stream_update {
	unsigned todo;
	uint64_t deadline; /* when to call stream_on_time(); 0: at once, CLOCK_NEVER: not at all */
};

enum stream_buf { STREAM_BUF_RX, STREAM_BUF_TX }; /* of QP_RXBUF and QP_TXBUF bytes */

/* What the owner does for its stream. False means "not now": the owner performs again later. */
struct stream_host {
	void *(*get_buf)(void *owner, enum stream_buf kind); /* NULL: no memory */
	void (*put_buf)(void *owner, enum stream_buf kind, void *buf);
	/* They are not to be given back yet, as they are soon needed again; NULL: never. */
	bool (*keeps_bufs)(void *owner);
	/*
	 * For how long the peer's host has left unacknowledged what was sent; 0: it has not, or
	 * nothing was sent. Asked while the receive is stalled: then no received byte can show that
	 * the peer is alive.
	 */
	uint64_t (*unacknowledged_ns)(void *owner);
	/* Has the peer ended its sending? Asked while the receive is stalled: the end may come
	 * after bytes that are not received. NULL: only a receive can say. */
	bool (*has_ended)(void *owner);
	uint64_t (*now)(void *owner);
	/* May the calling thread load from and store to the memory of the QP's regions? */
	bool (*may_touch)(void *owner);
	void (*event)(void *owner, enum stream_event event, int status);
	bool (*receive)(void *owner, struct stream_update *u); /* one rx_begin and rx_end */
	bool (*send)(void *owner, struct stream_update *u);    /* one tx_begin and tx_end */
	bool (*start_job)(void *owner, struct stream_update *u);
	void (*stop_job)(void *owner);
	void (*fin)(void *owner);
	void (*close)(void *owner);
	void (*redial)(void *owner); /* close the link and dial again */
	/* NULL: it has no other link. */
	void (*step)(void *owner, const struct qp_link_msg *msg, struct stream_update *u);
	void (*set_deadline)(void *owner, uint64_t at);
	/*
	 * The barrier; NULL unless the configuration takes part. Initiator: fill in the ORIGIN to
	 * the process that is so named, and whether it asks; false: no memory. It is called again
	 * after each answer, and first of all fenced() with what was answered: nothing of these is
	 * placed any more.
	 */
	bool (*origin)(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *origin);
	void (*fenced)(void *owner, const struct ext_origin *origin);
	/* Responder. */
	enum stream_fence (*identify)(void *owner, const struct ext_origin *origin);
};

struct stream; /* in stream_impl.h for this room; allocated by stream_new() */

/* Do all that is to be done and can be done now. */
void stream_perform(struct stream *s, struct stream_update *u);
/* Fill the update without changing anything. */
void stream_look(const struct stream *s, struct stream_update *u);
/* Likewise, where the last update was performed and the caller knows what has changed since: the link
 * has bytes (STREAM_DO_RECEIVE), or requests were posted (STREAM_DO_SEND). It costs less. */
void stream_expect(const struct stream *s, unsigned todo, struct stream_update *u);
/* The next event; false: there is none. */
bool stream_take_event(struct stream *s, enum stream_event *event, int *status);

/* --- life ----------------------------------------------------------------------------------- */

struct stream_config {
	enum stream_role role;
	bool crc;            /* we ask for CRC */
	bool offer_consent;  /* offer and accept our extensions */
	bool user_flushes;   /* our user issues native flushes; if not, its Reads are flushes */
	bool p2p;            /* initiator: ask for the peer-to-peer model at once */
	uint8_t revision;    /* initiator: first revision to try, 2 or 1 */
	uint64_t connect_ns; /* initiator: dial plus start-up, in all */
	uint64_t request_ns; /* responder: until the request is complete */
	uint64_t drain_ns;   /* disconnect: until the end is reported, whatever the peer does */
	uint32_t rings;      /* version of the rings in shared memory that it offers; 0: none */
	/*
	 * Take part in the barrier between former connections and later ones (doc/wire.md s6,
	 * "Origin"). instance: of a responder, what its HELLO calls this process.
	 */
	bool takes_part;
	uint8_t instance[EXT_ID_LEN];
	uint64_t liveness_ns; /* a consenting peer that is silent for so long is lost; 0: never */
	bool meets;           /* stream_set_meets() */
	const struct stream_host *host;
	void *owner;
};

/*
 * The one way in which this software begins a connection: the most that both ends may agree on, and
 * nothing about the user's flushes, which the user announces. Limits, host and owner are left to
 * set.
 */
struct stream_config stream_config_of(enum stream_role role, bool crc, bool extensions);

int stream_new(const struct stream_config *cfg, struct stream **out);
/*
 * Before connect, or before its link is there: of a queue pair without an id, which meets its peer
 * by itself (meeting.h). The peer has to consent. An initiator waits for the reply without a time
 * limit, as the peer's queue pair may not be ready. What ends the stream before full operation, or
 * while nothing is posted, leaves the queue pair as it is.
 */
void stream_set_meets(struct stream *s);
bool stream_peer_consents(const struct stream *s); /* in REQ_RCVD */
/* It gets another owner, which has its link from now on. No call on it is under way. */
void stream_move(struct stream *s, void *owner);
/*
 * The stream of a meeting that is used no more: hand its queue pair back as it was before its
 * start, with what is posted, and let the link be closed. No receive and no job may be under way.
 */
struct qp *stream_take_back_qp(struct stream *s, struct stream_update *u);
/* Of a meeting, in IDLE, instead of connect: the queue pair is its own peer, so its link has no
 * start-up frames, and its HELLO comes back to it. 0 or -errno. */
int stream_join_self(struct stream *s, const struct stream_params *params, uint64_t now,
		     struct stream_update *u);
bool stream_has_posted(const struct stream *s); /* sends without a completion */
/* Was a message of a user's begun or received on it? */
bool stream_was_used(const struct stream *s);
void stream_delete(struct stream *s); /* its QP must be detached */
enum stream_state stream_state(const struct stream *s);
enum stream_role stream_role(const struct stream *s);
const char *stream_state_str(enum stream_state state);
/* What the peer sent: request (responder) or reply
 * (initiator), with IRD/ORD from our side's view. */
const struct stream_params *stream_remote(const struct stream *s);
/* What was agreed; valid from LIVE on. */
const struct qp_stream *stream_agreed(const struct stream *s);

/* Both before connect or accept. 0, or -EINVAL. Other limits than the configuration's. */
int stream_set_limits(struct stream *s, uint64_t connect_ns, uint64_t liveness_ns);
/* Our user issues native flushes, or else flushes by reading: doc/wire.md s3. */
int stream_set_user_flushes(struct stream *s, bool user_flushes);

/* --- the user's calls ----------------------------------------------------------------------- */

/*
 * 0 or -errno (-EINVAL: not in this state or a value out of range). When the peer went away before
 * its request was answered, accept gives -ECONNRESET and reject 0. A request that is dropped must
 * be rejected: otherwise the peer dials again.
 */
int stream_connect(struct stream *s, const struct stream_params *params, uint64_t now,
		   struct stream_update *u); /* -> DIALING; the owner dials */
int stream_accept(struct stream *s, const struct stream_params *params, uint32_t mss, uint64_t now,
		  struct stream_update *u);
int stream_reject(struct stream *s, const void *pdata, uint8_t len, uint64_t now,
		  struct stream_update *u);
int stream_disconnect(struct stream *s, uint64_t now, struct stream_update *u);
/* UNREACHABLE, if there was no outcome before. */
int stream_cancel(struct stream *s, struct stream_update *u);
void stream_abort(struct stream *s, struct stream_update *u); /* at once; no event */

/* Responder: what identify() left to be cut is, and the peer gets its answer. */
void stream_fence_end(struct stream *s, uint64_t now, struct stream_update *u);
/* A later connection has named this one: it ends at once, and nothing of it is placed any more. */
void stream_cut_off(struct stream *s, struct stream_update *u);
/*
 * Initiator, after the end of the connection: returns whether the target certainly places none of
 * its bytes any more. This is certain if no operation of the user was sent, if the target has sent
 * a Terminate, or if the target's FIN proves that its queue pair had ended before.
 */
bool stream_is_over(const struct stream *s);

/* --- its queue pair ------------------------------------------------------------------------- */

/* Before connect or accept. The stream owns it until it is detached. */
void stream_attach_qp(struct stream *s, struct qp *qp);
/* Hand the QP back, failed if it was started. A stream in operation ends (DISCONNECTED, if that was
 * not reported yet). No receive and no job may be under way. */
struct qp *stream_detach_qp(struct stream *s, struct stream_update *u);
struct qp *stream_qp(const struct stream *s); /* NULL: none is attached */

/* As qp_post_send(), qp_post_recv() and qp_post_list(). u may be NULL: then stream_look() is to
 * follow, unless stream_may_wait(), or behind a receive stream_needs_nothing(). */
int stream_post_send(struct stream *s, struct ibv_send_wr *wr, struct ibv_send_wr **bad,
		     struct stream_update *u);
int stream_post_recv(struct stream *s, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad,
		     struct stream_update *u);
int stream_post_list(struct stream *s, const struct vext_wr *wrs, int n, int *posted,
		     struct stream_update *u);
/* All that there is to send may wait for what is posted next: see qp_tx_may_wait(). */
enum qp_patience stream_may_wait(const struct stream *s);
/* In full operation, and as qp_owes_ack_only(). */
bool stream_owes_ack_only(const struct stream *s);
/* Behind a posted receive: nothing waited for it, and nothing went wrong. */
bool stream_needs_nothing(const struct stream *s);
/* What is here already goes to receives, of the queue pair or of its SRQ. */
void stream_resume(struct stream *s, struct stream_update *u);
/* The user fails the queue pair. */
void stream_fail_qp(struct stream *s, struct stream_update *u);
/* As qp_limit_requests(). */
void stream_limit_requests(struct stream *s, uint32_t ord, struct stream_update *u);
/* The peer of the queue pair does not connect in time: end the oldest request with
 * RETRY_EXC_ERR. */
void stream_give_up_qp(struct stream *s, struct stream_update *u);
/* As qp_give_away(). */
void stream_give_away(struct stream *s, struct stream_update *u);
/* A region goes away: see qp_detach_mr(). */
void stream_detach_mr(struct stream *s, struct mr *mr, bool forget, struct stream_update *u);

/* Of the queue pair. There must be one, but for stream_qp_is_failed() and stream_requests(). */
/* As qp_set_taker(); without a queue pair nothing is done. */
void stream_set_taker(struct stream *s, struct cq_taker *taker);
bool stream_qp_is_failed(const struct stream *s);
enum ibv_qp_state stream_qp_state(const struct stream *s);
const struct qp_counters *stream_counters(const struct stream *s);
struct qp_news stream_news(const struct stream *s); /* zeros: there is no queue pair */
uint32_t stream_caps(const struct stream *s);       /* VEXT_CAP_*; once started */
uint32_t stream_requests(const struct stream *s);   /* of the peer, not answered yet */
bool stream_is_local_fault(const struct stream *s); /* the first error was local */
/* Would a send load from memory that may wait for a file system? When in doubt, true. */
bool stream_send_can_stall(struct stream *s);

/*
 * Jobs: one at a time. stream_job_begin() changes an update that is filled; it is false when no job
 * is due. One that is abandoned is over for the queue pair, with -EFAULT: as for a range past the
 * end of a truncated file. Its end is awaited all the same before the next one begins.
 */
bool stream_job_begin(struct stream *s, struct qp_job *job, struct stream_update *u);
void stream_job_end(struct stream *s, int status, uint64_t now, struct stream_update *u);
void stream_job_abandon(struct stream *s, uint64_t now, struct stream_update *u);
void stream_job_stopped(struct stream *s, struct stream_update *u);
bool stream_awaits_job(const struct stream *s); /* one is under way and was not abandoned */

/* --- its link ------------------------------------------------------------------------------- */

void stream_on_dialed(struct stream *s, uint32_t mss, uint64_t now, struct stream_update *u);
/* err: a positive errno. */
void stream_on_dial_failed(struct stream *s, int err, uint64_t now, struct stream_update *u);
/* Responder: the link is there. */
void stream_on_incoming(struct stream *s, uint64_t now, struct stream_update *u);

/*
 * Where the next bytes go: the memory is the link's from stream_rx_begin() to stream_rx_end(), the
 * next call on the stream. Registered memory among it is held for so long. False: nothing is to be
 * received now; no end follows.
 */
struct stream_rx {
	struct iovec iov[QP_RX_IOV];
	int n;
	size_t direct; /* so much of it, from its first byte on, is registered memory */
};
bool stream_rx_begin(struct stream *s, struct stream_rx *rx, struct stream_update *u);
/*
 * got > 0: bytes that have come. 0: the peer will send no more. -EAGAIN, -EINTR: nothing came.
 * -EFAULT: the memory is gone. Others: the link broke; that, and the end, may be reported without a
 * begin, too.
 */
void stream_rx_end(struct stream *s, ssize_t got, uint64_t now, struct stream_update *u);
/*
 * The peer has given the connection up. Of the bytes that are received from now on only a Terminate
 * counts (qp_rx_give_up()). False: they are not the queue pair's, and need not be received.
 */
bool stream_rx_give_up(struct stream *s);
/*
 * Instead of a begin and an end, over a link in memory. stream_rx_in_place() takes bytes that lie in
 * memory which the peer may write to; returns how many. 0: they are to be received into memory.
 * stream_tx_in_place() builds short messages in such memory; returns how many bytes. The link takes
 * all of them, and then stream_tx_in_place_end() is to follow. 0: stream_tx_begin() is to follow.
 *
 * None of them fills an update. If stream_is_calm() afterwards, nothing is to be done, as after most
 * messages. Else stream_in_place_end() is to follow, or stream_look() if nothing was received.
 */
size_t stream_rx_in_place(struct stream *s, const void *bytes, size_t len);
size_t stream_tx_in_place(struct stream *s, void *to, size_t room);
void stream_tx_in_place_end(struct stream *s, size_t len);
bool stream_is_calm(const struct stream *s);
void stream_in_place_end(struct stream *s, struct stream_update *u);
/* Bytes to send: returns how many entries; 0: nothing. */
int stream_tx_begin(struct stream *s, struct iovec iov[QP_TX_IOV], struct stream_update *u);
/* Likewise: bytes that the link took, -EAGAIN, -EINTR, -EFAULT, or it broke. Where the time
 * matters, the update asks for it. */
void stream_tx_end(struct stream *s, ssize_t sent, struct stream_update *u);
void stream_fin_sent(struct stream *s, struct stream_update *u);
void stream_link_closed(struct stream *s, struct stream_update *u);
/* The owner is about to dial again. */
void stream_redial(struct stream *s, struct stream_update *u);
/* Both FINs are exchanged, so the link is closed. Otherwise it is reset, so that nothing that was
 * sent before arrives later. */
bool stream_is_orderly(const struct stream *s);
/* Something that changes the peer's memory was posted, and neither an answer nor the end proves
 * that it is done: it may be on its way. */
bool stream_leaves_writes(const struct stream *s);
/* It takes no bytes until a receive is posted, and the peer's liveness is to be checked. */
bool stream_is_stalled(const struct stream *s);

/*
 * Another link for the same stream (doc/wire.md s6, "Link"). The owner may agree on one with the
 * peer if both ends offer rings, from full operation on. It sends its steps by stream_link_post()
 * and is given the peer's, and the end of its own SWITCH, by the host's step(). Behind a SWITCH
 * nothing moves in that direction until the owner has the other link ready, and says so.
 */
bool stream_offers_rings(const struct stream *s); /* both ends do, and it is in full operation */
void stream_link_post(struct stream *s, enum ext_link_step step, const uint8_t *token,
		      struct stream_update *u); /* token NULL: zeros */
void stream_link_tx_switched(struct stream *s, struct stream_update *u);
void stream_link_rx_switched(struct stream *s, struct stream_update *u);
void stream_link_refuse(struct stream *s, struct stream_update *u); /* the peer's SWITCH */
/* A word of the other link for qp_watch_given_up(). Until it is NULL again it can be read. */
void stream_watch_given_up(struct stream *s, const atomic_uint *word);
void stream_link_note(struct stream *s, enum shm_state state); /* for the counters */

/* Until when; as in the last update. */
uint64_t stream_deadline(const struct stream *s);
/* Called after all received bytes were processed: only then is liveness judged. */
void stream_on_time(struct stream *s, uint64_t now, struct stream_update *u);

#endif
