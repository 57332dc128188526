/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.h -- one connection from the TCP connection's first byte to its last: MPA
 * start-up (RFC 5044 s7, RFC 6581), then the queue pair, then the orderly end.
 *
 * Pure: bytes, time and the user's wishes go in; bytes, events and a deadline come out.
 * Every function is called with the stream's lock; `event` is called from inside them
 * and must not call back.
 */
#ifndef CM_STREAM_H
#define CM_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "softrnic/rnic/qp.h"

#define CM_PDATA_MAX 255 /* librpma's length is 8 bits; siw and others refuse above 251 */

enum cm_role { CM_INITIATOR, CM_RESPONDER };

/* States and what they wait for; cm_state_str() names them. */
#define CM_STATES(X)                                                                               \
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
enum cm_state {
#define X(name) CM_##name,
	CM_STATES(X)
#undef X
};

enum cm_stream_event {
	CM_EV_CONNECT_REQUEST, /* responder: request and private data are in */
	CM_EV_ESTABLISHED,
	CM_EV_REJECTED,      /* by the peer, or refused by its host: -ECONNREFUSED; or it hung up:
				-ECONNRESET */
	CM_EV_UNREACHABLE,   /* no answer in time; status: -ETIMEDOUT */
	CM_EV_CONNECT_ERROR, /* anything else before ESTABLISHED; status: -errno */
	CM_EV_DISCONNECTED, /* once, after ESTABLISHED; or, disconnected right after accept, without
			       it */
	CM_EV_LOST,         /* instead: the peer, or the way to it, vanished; status: -errno */
	CM_EV_REDIAL,       /* initiator: close the LLP, dial again; a stricter peer (D3) */
	CM_EV_DEAD,         /* responder: gone before the user saw a request */
};

struct cm_params {
	uint16_t ird, ord; /* responder_resources, initiator_depth */
	uint8_t pdata_len;
	uint8_t pdata[CM_PDATA_MAX];
};

struct cm_config {
	enum cm_role role;
	bool crc;             /* we wish CRC */
	bool offer_consent;   /* offer and accept our extensions */
	bool user_flushes;    /* our user issues native flushes; if not, its Reads are flushes */
	bool p2p;             /* initiator: ask for the peer-to-peer model at once */
	uint8_t revision;     /* initiator: first revision to try, 2 or 1 */
	uint64_t connect_ns;  /* initiator: dial plus start-up, in all */
	uint64_t request_ns;  /* responder: until the request is complete */
	uint64_t drain_ns;    /* disconnect: until the user is told, whatever the peer does */
	uint64_t liveness_ns; /* a consenting peer that is silent for so long is lost; 0: never */
	void (*event)(void *owner, enum cm_stream_event event, int status);
	void *owner;
};

/*
 * The one way in which this software begins a connection: the most that both ends may agree on, and
 * no word about the user's flushes, which is the user's to say. Limits and `event` are left to set.
 */
struct cm_config cm_config_of(enum cm_role role, bool crc, bool extensions);

struct cm_stream; /* in stream_impl.h for this room; allocated by cm_stream_new() */

int cm_stream_new(const struct cm_config *cfg, struct cm_stream **out);
void cm_stream_delete(struct cm_stream *s); /* the QP is not touched; detach it first */
enum cm_state cm_stream_state(const struct cm_stream *s);
const char *cm_state_str(enum cm_state state);
/* The QP that gets the stream; set before connect or accept. NULL detaches it, which ends a stream
 * in operation (DISCONNECTED, if that was not said yet). */
void cm_stream_set_qp(struct cm_stream *s, struct qp *qp);
/* What the peer sent: request (responder) or reply (initiator), with IRD/ORD from our side's view.
 */
const struct cm_params *cm_stream_remote(const struct cm_stream *s);
/* What was agreed; valid from LIVE on. */
const struct qp_stream *cm_stream_agreed(const struct cm_stream *s);

/* Both before connect or accept. 0, or -EINVAL. Other limits than the configuration's. */
int cm_stream_set_limits(struct cm_stream *s, uint64_t connect_ns, uint64_t liveness_ns);
/* Our user issues native flushes, or else flushes by reading: doc/wire.md s3. */
int cm_stream_set_user_flushes(struct cm_stream *s, bool user_flushes);

/*
 * User's wishes. 0 or -errno (-EINVAL: not in this state or a value out of range). When the
 * peer went away before its request was answered, accept gives -ECONNRESET and reject 0.
 * Whoever drops a request must reject it: a peer that is hung up on instead dials again.
 */
int cm_stream_connect(struct cm_stream *s, const struct cm_params *params,
		      uint64_t now); /* -> DIALING */
int cm_stream_accept(struct cm_stream *s, const struct cm_params *params, uint32_t mss,
		     uint64_t now);
int cm_stream_reject(struct cm_stream *s, const void *pdata, uint8_t len, uint64_t now);
int cm_stream_disconnect(struct cm_stream *s, uint64_t now);
/* The user does not want to wait any longer: UNREACHABLE, if there was no outcome before. */
int cm_stream_cancel(struct cm_stream *s);
void cm_stream_abort(struct cm_stream *s); /* at once; no event */

/* The LLP. */
void cm_on_dialed(struct cm_stream *s, uint32_t mss, uint64_t now); /* TCP is up */
void cm_on_dial_failed(struct cm_stream *s, int err, uint64_t now); /* positive errno */
void cm_on_incoming(struct cm_stream *s, uint64_t now);             /* responder: accepted socket */

/* Lend with qp_rx_lend/qp_tx_lend on the QP; it may already receive in REP_SENT. */
bool cm_rx_needs_buf(const struct cm_stream *s);
bool cm_tx_needs_buf(const struct cm_stream *s);
int cm_rx_want(struct cm_stream *s, struct iovec iov[QP_RX_IOV]);
/* Bytes belong elsewhere now than into what cm_rx_want() returned last, which awaits its
 * cm_rx_got(): a receive that is still under way is to be ended. */
bool cm_rx_has_moved(const struct cm_stream *s);
void cm_rx_got(struct cm_stream *s, size_t len, uint64_t now);
void cm_rx_fault(struct cm_stream *s, uint64_t now);
void cm_rx_eof(struct cm_stream *s, uint64_t now);
void cm_rx_error(struct cm_stream *s, int err, uint64_t now); /* ECONNRESET, ETIMEDOUT ... */
int cm_tx_gather(struct cm_stream *s, struct iovec iov[QP_TX_IOV]);
void cm_tx_sent(struct cm_stream *s, size_t len, uint64_t now);
void cm_tx_error(struct cm_stream *s, int err, uint64_t now);
void cm_tx_fault(struct cm_stream *s, uint64_t now); /* EFAULT: a source's memory is gone */
/* After posts, write-backs, kicks: let the state machine look at the QP. */
void cm_stream_poke(struct cm_stream *s, uint64_t now);

/*
 * Who does not read cannot hear the peer, but may ask the LLP. While cm_is_deaf(), tell before
 * cm_on_time() for how long nothing of what was sent has been acknowledged (0: it is, or nothing
 * was sent).
 */
bool cm_is_deaf(const struct cm_stream *s);
void cm_on_unacknowledged(struct cm_stream *s, uint64_t since_ns, uint64_t now);

/* Time. */
uint64_t cm_deadline(const struct cm_stream *s); /* CLOCK_NEVER if none */
void cm_on_time(struct cm_stream *s, uint64_t now);

/* What the owner of the socket must do when nothing is left to send. */
bool cm_wants_fin(const struct cm_stream *s); /* shutdown(SHUT_WR) once */
void cm_fin_done(struct cm_stream *s, uint64_t now);
bool cm_wants_close(const struct cm_stream *s); /* close the socket now */

#endif
