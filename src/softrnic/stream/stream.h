/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h -- one connection from the TCP connection's first byte to its last: MPA
 * start-up (RFC 5044 s7, RFC 6581), then the queue pair, then the orderly end.
 *
 * Pure: bytes, time and the user's wishes go in; bytes, events and a deadline come out.
 * Every function is called with the stream's lock; `event` is called from inside them
 * and must not call back.
 */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "softrnic/rnic/qp.h"

#define STREAM_PDATA_MAX 255 /* librpma's length is 8 bits; siw and others refuse above 251 */

enum stream_role { STREAM_INITIATOR, STREAM_RESPONDER };

/* States and what they wait for; stream_state_str() names them. */
#define STREAM_STATES(X)                                                                           \
	X(IDLE)     /* no LLP yet */                                                               \
	X(DIALING)  /* initiator: TCP is connecting */                                             \
	X(REQ_SENT) /* initiator: waiting for the MPA reply */                                     \
	X(REQ_WAIT) /* responder: waiting for the MPA request */                                   \
	X(REQ_RCVD) /* responder: the user has to accept or reject */                              \
	X(REP_SENT) /* responder: the reply is on its way out, or a RTR is awaited */              \
	X(LIVE)     /* full operation */                                                           \
	X(DRAINING) /* disconnect: posted work still goes out */                                   \
	X(CLOSING) /* our FIN is out (or a reject/Terminate is being sent); waiting for the peer's \
		    */                                                                             \
	X(LINGERING) /* the user was told of the end; the peer may not have read all that was sent \
		      */                                                                           \
	X(CLOSED)    /* nothing more will come */
enum stream_state {
#define X(name) STREAM_##name,
	STREAM_STATES(X)
#undef X
};

enum stream_event {
	STREAM_EV_CONNECT_REQUEST, /* responder: request and private data are in */
	STREAM_EV_ESTABLISHED,
	STREAM_EV_REJECTED,      /* by the application there: -EACCES; by its host, as nobody
				    listens: -ECONNREFUSED; by hanging up: -ECONNRESET */
	STREAM_EV_UNREACHABLE,   /* no answer in time; status: -ETIMEDOUT */
	STREAM_EV_CONNECT_ERROR, /* anything else before ESTABLISHED; status: -errno */
	STREAM_EV_DISCONNECTED,  /* once, after ESTABLISHED; or, disconnected right after accept,
				without  it */
	STREAM_EV_LOST,          /* instead: the peer, or the way to it, vanished; status: -errno */
	STREAM_EV_REDIAL,        /* initiator: close the LLP, dial again; a stricter peer (D3) */
	STREAM_EV_DEAD,          /* responder: gone before the user saw a request */
};

struct stream_params {
	uint16_t ird, ord; /* responder_resources, initiator_depth */
	uint8_t pdata_len;
	uint8_t pdata[STREAM_PDATA_MAX];
};

struct stream_config {
	enum stream_role role;
	bool crc;             /* we wish CRC */
	bool offer_consent;   /* offer and accept our extensions */
	bool user_flushes;    /* our user issues native flushes; if not, its Reads are flushes */
	bool p2p;             /* initiator: ask for the peer-to-peer model at once */
	uint8_t revision;     /* initiator: first revision to try, 2 or 1 */
	uint64_t connect_ns;  /* initiator: dial plus start-up, in all */
	uint64_t request_ns;  /* responder: until the request is complete */
	uint64_t drain_ns;    /* disconnect: until the user is told, whatever the peer does */
	uint64_t liveness_ns; /* a consenting peer that is silent for so long is lost; 0: never */
	void (*event)(void *owner, enum stream_event event, int status);
	void *owner;
};

/*
 * The one way in which this software begins a connection: the most that both ends may agree on, and
 * no word about the user's flushes, which is the user's to say. Limits and `event` are left to set.
 */
struct stream_config stream_config_of(enum stream_role role, bool crc, bool extensions);

struct stream; /* in stream_impl.h for this room; allocated by stream_new() */

int stream_new(const struct stream_config *cfg, struct stream **out);
void stream_delete(struct stream *s); /* the QP is not touched; detach it first */
enum stream_state stream_state(const struct stream *s);
const char *stream_state_str(enum stream_state state);
/* The QP that gets the stream; set before connect or accept. NULL detaches it, which ends a stream
 * in operation (DISCONNECTED, if that was not said yet). */
void stream_set_qp(struct stream *s, struct qp *qp);
/* What the peer sent: request (responder) or reply (initiator), with IRD/ORD from our side's view.
 */
const struct stream_params *stream_remote(const struct stream *s);
/* What was agreed; valid from LIVE on. */
const struct qp_stream *stream_agreed(const struct stream *s);

/* Both before connect or accept. 0, or -EINVAL. Other limits than the configuration's. */
int stream_set_limits(struct stream *s, uint64_t connect_ns, uint64_t liveness_ns);
/* Our user issues native flushes, or else flushes by reading: doc/wire.md s3. */
int stream_set_user_flushes(struct stream *s, bool user_flushes);

/*
 * User's wishes. 0 or -errno (-EINVAL: not in this state or a value out of range). When the
 * peer went away before its request was answered, accept gives -ECONNRESET and reject 0.
 * Whoever drops a request must reject it: a peer that is hung up on instead dials again.
 */
int stream_connect(struct stream *s, const struct stream_params *params,
		   uint64_t now); /* -> DIALING */
int stream_accept(struct stream *s, const struct stream_params *params, uint32_t mss, uint64_t now);
int stream_reject(struct stream *s, const void *pdata, uint8_t len, uint64_t now);
int stream_disconnect(struct stream *s, uint64_t now);
/* The user does not want to wait any longer: UNREACHABLE, if there was no outcome before. */
int stream_cancel(struct stream *s);
void stream_abort(struct stream *s); /* at once; no event */

/* The LLP. */
void stream_on_dialed(struct stream *s, uint32_t mss, uint64_t now); /* TCP is up */
void stream_on_dial_failed(struct stream *s, int err, uint64_t now); /* positive errno */
void stream_on_incoming(struct stream *s, uint64_t now); /* responder: accepted socket */

/* Lend with qp_rx_lend/qp_tx_lend on the QP; it may already receive in REP_SENT. */
bool stream_rx_needs_buf(const struct stream *s);
bool stream_tx_needs_buf(const struct stream *s);
int stream_rx_want(struct stream *s, struct iovec iov[QP_RX_IOV]);
/* Bytes belong elsewhere now than into what stream_rx_want() returned last, which awaits its
 * stream_rx_got(): a receive that is still under way is to be ended. */
bool stream_rx_has_moved(const struct stream *s);
void stream_rx_got(struct stream *s, size_t len, uint64_t now);
void stream_rx_fault(struct stream *s, uint64_t now);
void stream_rx_eof(struct stream *s, uint64_t now);
void stream_rx_error(struct stream *s, int err, uint64_t now); /* ECONNRESET, ETIMEDOUT ... */
int stream_tx_gather(struct stream *s, struct iovec iov[QP_TX_IOV]);
void stream_tx_sent(struct stream *s, size_t len, uint64_t now);
void stream_tx_error(struct stream *s, int err, uint64_t now);
void stream_tx_fault(struct stream *s, uint64_t now); /* EFAULT: a source's memory is gone */
/* After posts, write-backs, kicks: let the state machine look at the QP. */
void stream_poke(struct stream *s, uint64_t now);

/*
 * Who does not read cannot hear the peer, but may ask the LLP. While stream_is_deaf(), tell before
 * stream_on_time() for how long nothing of what was sent has been acknowledged (0: it is, or
 * nothing was sent).
 */
bool stream_is_deaf(const struct stream *s);
void stream_on_unacknowledged(struct stream *s, uint64_t since_ns, uint64_t now);

/* Time. */
uint64_t stream_deadline(const struct stream *s); /* CLOCK_NEVER if none */
void stream_on_time(struct stream *s, uint64_t now);

/* What the owner of the socket must do when nothing is left to send. */
bool stream_wants_fin(const struct stream *s); /* shutdown(SHUT_WR) once */
void stream_fin_done(struct stream *s, uint64_t now);
bool stream_wants_close(const struct stream *s); /* close the socket now */

#endif
