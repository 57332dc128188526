/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.h -- a connected queue pair on one byte stream, reliable (RC) or unreliable (UC).
 *
 * No I/O, no clock, no lock inside: every function below is called with the lock of
 * the stream that owns the QP. The owner moves bytes and work:
 *
 *   receive:     n = qp_rx_want(qp, iov)   where the next bytes go; 0 = do not read now
 *                qp_rx_got(qp, len)        they are there  (qp_rx_fault(qp): memory was gone)
 *   send:        n = qp_tx_gather(qp, iov) the bytes to send now; 0 = none
 *                qp_tx_sent(qp, len)       the LLP took that many bytes
 *   jobs:        qp_next_job(qp, &job), later qp_on_job(qp, status)
 *   life:        qp_due(), and qp_is_idle(), after any of these
 *
 * Files: qp.c (state, create, destroy); op.c and op_*.c (the operations, one row each), hello.c,
 * origin.c, heartbeat.c, ack.c; queues.c (the queues), qp_post.c, qp_sq.c, qp_requests.c and
 * qp_recv.c (the use of each queue); qp_rx_io.c, qp_rx.c and qp_rx_over.c (bytes to FPDUs);
 * qp_tx.c, qp_tx_turn.c, qp_tx_msg.c and tx_batch.c (the next message, messages as FPDUs, FPDUs in
 * the lent buffer); dirty.c (placed bytes that are not written back), place.c (the CPU's writes to
 * memory).
 */
#ifndef RNIC_QP_H
#define RNIC_QP_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/terminate.h"
#include "softrnic/rnic/cq.h"
#include "softrnic/rnic/mr.h"
#include "softrnic/rnic/srq.h"
#include "verbs_ext/verbs_ext.h"

#define QP_RX_IOV      2
#define QP_TX_IOV      128          /* entries qp_tx_gather may return */
#define QP_RXBUF       (128u << 10) /* size of the receive buffers that the owner lends */
#define QP_TXBUF       (256u << 10) /* size of the send buffers that the owner lends */
#define QP_PATIENT_MAX (32u << 10)  /* bytes of deferred requests: qp_tx_may_wait() */

/* The kinds of ready-to-receive FPDU (RFC 6581 s9). */
enum qp_rtr { QP_RTR_NONE, QP_RTR_SEND, QP_RTR_WRITE, QP_RTR_READ };

/* The result of the start-up, for qp_start(). */
struct qp_stream {
	bool crc;          /* CRC32C is generated and checked */
	bool markers;      /* the peer requests markers in our output */
	bool consent;      /* the peer agreed to our extensions and to big FPDUs */
	bool peer_flushes; /* the peer's user issues native flushes */
	uint32_t limit_ms; /* stated in this end's HELLO: a peer is lost after this silence;
			      0: never */
	uint32_t rings;    /* stated in this end's HELLO: version of its rings; 0: none */
	bool takes_part;   /* this end takes part in the barrier of ORIGINs, if the peer does */
	bool initiates;    /* this end is the initiator, which sends the ORIGINs */
	uint8_t instance[EXT_ID_LEN]; /* stated in this end's HELLO if it takes part */
	bool hold_tx;        /* responder without consent: no FPDU before the initiator's first */
	enum qp_rtr rtr_out; /* initiator: send this as the very first FPDU */
	enum qp_rtr rtr_in;  /* responder: the first FPDU is this one, and not for the user */
	uint16_t ird, ord;
	uint32_t mss; /* EMSS of the LLP, for the size of FPDUs to peers without consent */
};

/* The job that the owner runs for a request of the peer. */
enum qp_job_kind {
	QP_JOB_WRITE_BACK,
	QP_JOB_DIGEST, /* a write-back, then a digest of the bytes read back */
	QP_JOB_CLASS,  /* find the durability class of the range; nothing is written */
};
struct qp_job {
	enum qp_job_kind kind;
	struct mr *mr; /* held until qp_on_job(); if `lasting`, only referred to */
	bool lasting;  /* deregistration need not wait for the job */
	void *addr;
	uint64_t len;
	bool strict;
	uint32_t alg; /* of a digest: enum vext_digest_alg */
	/* Place of the result: a whole digest, or a class, which is only its `durability`. The
	 * owner fills it in just before qp_on_job(qp, 0). */
	struct vext_digest *answer;
};

/* Counters of one QP, from one list. */
/* clang-format off */
#define QP_COUNTERS(X)                                                                             \
	X(tx_bytes) X(rx_bytes) X(shm_tx_bytes) X(shm_rx_bytes) X(shm_state) X(tx_fpdus) X(rx_fpdus) X(tx_gathers) X(rx_reads)                  \
	X(tx_copied_bytes) X(rx_copied_bytes) X(rx_direct_bytes)                                   \
	X(writes_in) X(sends_in) X(reads_in) X(flushes_in) X(atomics_in)                           \
	X(parked_sends) X(lost_in) X(stalls) X(crc)                                                           \
	X(writebacks) X(writeback_failures) X(crc_errors) X(terminates_in) X(terminates_out)       \
	X(pings_in) X(pings_out) X(pongs_in) X(pongs_out) X(acks_in) X(acks_out)
/* clang-format on */
struct qp_counters {
#define X(name) uint64_t name;
	QP_COUNTERS(X)
#undef X
};

struct qp_config {
	struct mr_table *mrs;
	struct ibv_pd *pd;
	struct cq *send_cq, *recv_cq;
	struct srq *srq; /* NULL: own receive queue */
	uint32_t qp_num;
	struct ibv_qp_cap cap; /* already checked against the device's limits */
	bool sq_sig_all;
	/* Verbs' object of a plain queue pair. Its user moves it through the states of verbs, and
	 * posts to it before it is started. NULL: the state is that of the stream. */
	void *plain;
	/* UC: there are no requests, and errors are not reported to the peer. A message that this
	 * end cannot accept is lost: qp_rx_lose(). */
	bool unreliable;
	bool peer_rfc7306;   /* the peer supports RFC 7306 although it does not consent */
	bool strict_persist; /* persistent Flushes of volatile memory fail, for both ends */
	/*
	 * This user expects that a completed Write or Send has reached the peer, as on RoCE. So a
	 * request completes only after the peer has placed or delivered it and has sent an Ack.
	 * Effective if the peer's HELLO announces Acks, too; otherwise a request completes after
	 * the LLP has taken all its bytes.
	 */
	bool acks;
	/*
	 * The owner's functions. notify: called from any thread, without the QP's lock: the QP may
	 * continue, because its SRQ has receives again. get: keeps the owner alive until that call
	 * is done; the QP itself may be deleted meanwhile.
	 */
	void (*notify)(void *owner);
	void (*get)(void *owner);
	void (*async)(void *owner, enum ibv_event_type event);
	/* Called when the QP is about to fail, before any event, completion or state shows the
	 * failure. May be NULL. */
	void (*failing)(void *owner);
	/*
	 * Bytes that were received before the peer gave up its connection must not be placed
	 * afterwards. The owner sets `alarm`, from any thread, when this may have happened. The QP
	 * reads `alarm` before it executes an FPDU; if it is set, is_over() returns whether further
	 * bytes no longer count. NULL, both: the link has no such end.
	 */
	const atomic_uint *alarm;
	bool (*is_over)(void *owner);
	void *owner;
};

/* The structures that a program sees of a queue pair. Both begin with the same members. */
struct qp_face {
	struct ibv_qp_ex ex; /* with functions if the queue pair has a builder */
	void *builder;       /* the owner's builder of work requests; or NULL */
};

struct qp; /* defined in qp_impl.h, for this room only; begins with struct ibv_qp */

int qp_new(const struct qp_config *cfg, struct qp **out);
/*
 * Stops all operations, releases all holds, drops the QP's completions. No job may be in progress.
 */
void qp_delete(struct qp *qp);
/* Completions may go directly to this taker until a call with NULL. Meanwhile the taker's thread
 * holds the QP's lock. */
void qp_set_taker(struct qp *qp, struct cq_taker *taker);
struct ibv_qp *qp_ibv(struct qp *qp);
/* Accepts a queue pair of any type. */
static inline struct qp_face *qp_face(struct ibv_qp *ibv)
{
	return container_of(ibv, struct qp_face, ex.qp_base);
}
struct qp *qp_of(struct ibv_qp *ibv);
void *qp_owner(const struct qp *qp);
const struct qp_config *qp_config(const struct qp *qp);
const struct qp_counters *qp_counters(const struct qp *qp);

/* INIT -> RTS: the stream is in full operation. */
int qp_start(struct qp *qp, const struct qp_stream *stream);
/* -> SQD: accept no new work requests; posted ones are still sent. */
void qp_drain(struct qp *qp);
/* Set the reason for which the owner will end the stream. It becomes the vendor_err of all requests
 * that are then unfinished. Only the first reason counts. */
void qp_set_link_cause(struct qp *qp, int err);
/* -> ERR, without a Terminate: the first work request ends with `status`, all others with
 * WR_FLUSH_ERR. */
void qp_fail(struct qp *qp, enum ibv_wc_status status);
/* As qp_fail(), for a peer that is gone. */
void qp_fail_lost(struct qp *qp);
/*
 * For an unreliable queue pair whose stream has ended: posted requests complete, and their messages
 * are lost, as on a network without the peer. A Bind or Local Invalidate is executed. If it has to
 * wait for another connection, it and all later requests stay posted until the next call. No effect
 * on other queue pairs.
 */
void qp_give_away(struct qp *qp);
/* The stream has ended. Inside an FPDU this is an error; on an FPDU boundary it is the peer's
 * disconnect. */
void qp_on_eof(struct qp *qp);
/*
 * For a queue pair that meets its peer by itself: leave a stream for another one, and keep the
 * posted requests. First qp_quiet(): afterwards the queue pair refers to no memory, and the owner
 * takes its buffers back. Then qp_rewind(): the state is INIT again. The queue pair must not have
 * failed.
 */
void qp_quiet(struct qp *qp);
void qp_rewind(struct qp *qp);
/* Set the limit of outstanding Reads, atomics and other requests, after the stream has reached full
 * operation. */
void qp_limit_requests(struct qp *qp, uint32_t ord);
uint64_t qp_traffic(const struct qp *qp);        /* grows with the messages of both users */
bool qp_has_posted(const struct qp *qp);         /* sends without a completion */
enum ibv_qp_state qp_state(const struct qp *qp); /* the state that the user sees */
bool qp_is_failed(const struct qp *qp);
/*
 * For a plain queue pair: its user moves it to a state other than ERR (qp_fail()) and RESET. In SQD
 * no posted request is begun. notify_drained: an event reports the completion of all begun
 * requests.
 */
void qp_move(struct qp *qp, enum ibv_qp_state state, bool notify_drained);
bool qp_is_draining(const struct qp *qp); /* in SQD, with begun requests left */
/* Choose the peer's requests that the QP executes: IBV_ACCESS_REMOTE_*. Initially a plain QP
 * executes none, and others execute all. */
void qp_permit(struct qp *qp, unsigned access);
/*
 * Move a plain queue pair without a stream to RESET: `fresh`, which is consumed, replaces it at the
 * same address. Posted requests are dropped without completions, and so are unpolled completions,
 * as on other devices.
 */
void qp_replace(struct qp *qp, struct qp *fresh);
/* The tasks of the owner: a set of QP_DUE_*. */
enum {
	QP_DUE_FAILED = 1,  /* end the stream */
	QP_DUE_RECEIVE = 2, /* receive: the QP accepts bytes */
	QP_DUE_SEND = 4,    /* send: the QP has bytes */
	QP_DUE_JOB = 8,     /* qp_next_job() */
	QP_DUE_LINK = 16,   /* qp_link_take() */
};
unsigned qp_due(const struct qp *qp);
/* Only an Ack is unsent: it may wait a moment for a message to join. */
bool qp_owes_ack_only(const struct qp *qp);
/* No task is due except QP_DUE_RECEIVE, as after most messages. */
bool qp_is_calm(const struct qp *qp);
/* The changes that the user can have seen: Writes of the peer in its memory, and completions. */
struct qp_news {
	uint64_t written, completed;
};
struct qp_news qp_news(const struct qp *qp);
/* No posted request is unsent, and none of our requests is unanswered. */
bool qp_is_idle(const struct qp *qp);
/* Posted requests may still change the peer's memory: no answer proves that they are done. */
bool qp_leaves_writes(const struct qp *qp);
/* The QP has failed, and the Terminate (if any) is sent: the LLP can be closed. */
bool qp_tx_is_done(const struct qp *qp);
/* The first error was in this end's memory or queues. */
bool qp_cause_is_local(const struct qp *qp);
/* The peer's first FPDU has arrived. */
bool qp_has_received(const struct qp *qp);
/* The first Terminate that was sent or received, or NULL. */
const struct terminate *qp_terminate(const struct qp *qp, bool *sent);
/* The peer's HELLO. NULL: it has not arrived, or the peer did not consent. */
const struct ext_hello *qp_peer_hello(const struct qp *qp);
/*
 * The ORIGIN (doc/wire.md s6). The peer's HELLO shows whether both ends take part. The initiator
 * may repeatedly post an ORIGIN that asks for an answer, and wait for the answer. The last ORIGIN
 * does not ask, and the users' requests follow it.
 */
bool qp_takes_part(const struct qp *qp);
int qp_origin_post(struct qp *qp, const struct ext_origin *origin); /* 0 or -ENOMEM */
bool qp_origin_answered(struct qp *qp, struct ext_answer *answer);  /* returns each answer once */
/*
 * Responder: returns an arrived ORIGIN once; the caller frees it. Until then nothing more is
 * received, and messages of the user are not received until qp_origin_accept(). NULL: there is
 * none.
 */
bool qp_origin_is_here(const struct qp *qp);
struct ext_origin *qp_origin_take(struct qp *qp);
void qp_origin_accept(struct qp *qp);
void qp_origin_answer(struct qp *qp, enum ext_origin_status status, uint32_t detail);
/* This end begins an orderly end. Messages that the peer sends before its own end are still
 * accepted. */
void qp_leave(struct qp *qp);
bool qp_peer_leaves(const struct qp *qp);
/* VEXT_CAP_*: the operations that the peer can execute. Known after qp_start() and the peer's
 * HELLO. */
uint32_t qp_caps(const struct qp *qp);

/* Posting functions return 0 or a positive errno, like the verbs calls. *bad is the first refused
 * request. */
int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* If qp_rx_waits_for_receive() is true, the caller must then call qp_rx_resume(). */
int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Post several work requests, of verbs and beyond: all of them (*posted is n), or none (0). */
int qp_post_list(struct qp *qp, const struct vext_wr *wrs, int n, int *posted);

/* The owner lends the buffers: it gives one before rx or tx if *_needs_buf() is true, and gets back
 * the buffer that *_reclaim() returns. */
bool qp_rx_needs_buf(const struct qp *qp);
void qp_rx_lend(struct qp *qp, void *buf); /* QP_RXBUF bytes */
void *qp_rx_reclaim(struct qp *qp);        /* NULL while in use */
bool qp_tx_needs_buf(const struct qp *qp); /* there are bytes to send, and no buffer */
void qp_tx_lend(struct qp *qp, void *buf); /* QP_TXBUF bytes */
void *qp_tx_reclaim(struct qp *qp);        /* NULL while it contains unsent bytes */

/* Push bytes that arrived before a buffer was lent (after a start-up frame); at most QP_RXBUF. */
void qp_rx_push(struct qp *qp, const void *bytes, size_t len);
/*
 * Room for received bytes. The owner uses this memory until it calls qp_rx_got() (with 0 if nothing
 * came) or qp_rx_fault(), one of which must follow; registered memory is held until then. After a
 * failure the room serves to drain the stream.
 */
int qp_rx_want(struct qp *qp, struct iovec iov[QP_RX_IOV]);
/* Length of the registered memory in the room of qp_rx_want(), which may vanish: the first entry,
 * or 0. */
size_t qp_rx_direct(const struct qp *qp);
void qp_rx_got(struct qp *qp, size_t len);
void qp_rx_fault(struct qp *qp);
/* The peer has given up its connection. Of its earlier bytes, which qp_rx_got() brings from now on,
 * only a Terminate counts. The owner reads the link's remaining bytes and then ends the stream. */
void qp_rx_give_up(struct qp *qp);
/*
 * Instead of qp_rx_want(): parse bytes in place, in memory that the peer may write to. Returns the
 * number of processed bytes. An incomplete FPDU is not processed unless it is large; the rest of a
 * large one goes through qp_rx_want(). Nothing is processed unless qp_rx_is_in_place(): no CRC,
 * nothing buffered.
 */
bool qp_rx_is_in_place(const struct qp *qp);
size_t qp_rx_in_place(struct qp *qp, const void *bytes, size_t len);
/* The QP accepts no bytes until a receive is posted. */
bool qp_rx_is_stalled(const struct qp *qp);
/* Accept more Sends without a receive. Called after a long stall, because the peer's end may follow
 * these Sends. */
void qp_rx_widen(struct qp *qp);
/* Do buffered bytes wait for a receive? */
bool qp_rx_waits_for_receive(const struct qp *qp);
/* Number of the peer's requests that have arrived and are unanswered. */
uint32_t qp_requests(const struct qp *qp);
/* Free the memory for requests of the peer, after none has arrived for a while. */
void qp_requests_trim(struct qp *qp);
/* May the next qp_tx_gather(), or the send of its bytes, load from memory with `can_stall`? Or may
 * qp_tx_sent() execute a request that does? True if in doubt. */
bool qp_tx_can_stall(struct qp *qp);
/* Continue with buffered bytes: a receive was posted, or a stall may be over. */
void qp_rx_resume(struct qp *qp);

/* The kind of the unsent messages. */
enum qp_patience {
	QP_AWAITED,     /* must not be deferred */
	QP_WRITES_WAIT, /* a few Writes without a completion, and Sends before, may be deferred */
	QP_SENDS_WAIT,  /* a few Sends without a completion may be deferred */
};
/* Deferred messages must not wait for long, because the peer may watch its memory. */
enum qp_patience qp_tx_may_wait(const struct qp *qp);
int qp_tx_gather(struct qp *qp, struct iovec iov[QP_TX_IOV]);
void qp_tx_sent(struct qp *qp, size_t len);
/*
 * Instead of qp_tx_gather(): build short messages that can be sent now in memory of the link, which
 * the peer may write to. Returns their length. The link sends all of these bytes, and then the
 * caller calls qp_tx_sent(). Other messages go through qp_tx_gather().
 */
size_t qp_tx_in_place(struct qp *qp, void *to, size_t room);
void qp_tx_fault(struct qp *qp); /* the memory of a source vanished (EFAULT) */
/*
 * The bytes that a failed QP must still send: begun FPDUs, and the Terminate. The caller frees
 * *bytes, which is NULL with length 0 if there are none, or no memory. Afterwards the QP has no
 * bytes to send.
 */
size_t qp_tx_take_rest(struct qp *qp, uint8_t **bytes);
/* The heartbeat with a consenting peer. qp_ping() requests an answer, and announces our limit;
 * qp_pong() answers without a request. The QP answers a ping of the peer without a call. */
void qp_ping(struct qp *qp, uint32_t limit_ms);
void qp_pong(struct qp *qp);
uint32_t qp_peer_limit_ms(const struct qp *qp); /* 0: unknown */
/*
 * The change to another link for the same stream (doc/wire.md s6, "Link"). The owner interprets the
 * steps; the QP sends and receives them in order. If too many steps wait to be sent or taken, a
 * further one replaces the last.
 */
struct qp_link_msg {
	unsigned step; /* EXT_LINK_*; may be one of a later version */
	uint8_t token[EXT_LINK_TOKEN];
};
#define QP_LINK_SENT 0                                     /* step: this end's SWITCH is sent */
bool qp_link_take(struct qp *qp, struct qp_link_msg *msg); /* false: there is none */
void qp_link_post(struct qp *qp, const struct qp_link_msg *msg);
/* After the step SENT no byte is sent until this call; all later bytes go over the other link. */
void qp_link_tx_switched(struct qp *qp);
/* After the peer's SWITCH no byte is received until this call; all later bytes come from the other
 * link. */
void qp_link_rx_switched(struct qp *qp);
/* Instead of qp_link_rx_switched(): there is no other link, so end the stream by a Terminate. */
void qp_link_refuse(struct qp *qp);
/* A word that the QP reads whenever it reads cfg.alarm. QP_GIVEN_UP in it: the peer has given up.
 * NULL: there is no such word. */
#define QP_GIVEN_UP 1
void qp_watch_given_up(struct qp *qp, const atomic_uint *word);
void qp_link_note(struct qp *qp, unsigned state); /* enum shm_state, for the counters */
/* A region is about to end: copy the bytes that half-sent FPDUs still need from it, and release it.
 * forget: bytes placed in the region can no longer be written back, even if it is `lasting`. */
void qp_detach_mr(struct qp *qp, struct mr *mr, bool forget);

/* Take a job. There is at most one at a time, because the requests of a stream are executed in
 * order. Returns false if there is none. */
bool qp_next_job(struct qp *qp, struct qp_job *job);
void qp_on_job(struct qp *qp, int status); /* 0 or -errno */

#endif
