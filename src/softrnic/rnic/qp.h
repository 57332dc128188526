/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.h -- a connected queue pair on one byte stream, reliable (RC) or unreliable (UC).
 *
 * No I/O, no clock, no lock inside: every function below is called with the lock of
 * the stream that owns the QP. The owner moves bytes and work:
 *
 *   receive:     n = qp_rx_want(qp, iov)   where the next bytes go; 0 = do not read now
 *                qp_rx_got(qp, len)        they are there  (qp_rx_fault(qp): memory was gone)
 *   send:        n = qp_tx_gather(qp, iov) what to send now; 0 = nothing
 *                qp_tx_sent(qp, len)       the LLP took that many bytes
 *   jobs:        qp_next_job(qp, &job), later qp_on_job(qp, status)
 *   life:        qp_due(), and qp_is_idle(), after any of these
 *
 * Files: qp.c (state, create, destroy); op.c and op_*.c (the operations, one row each), hello.c,
 * origin.c, heartbeat.c, ack.c; queues.c (plain queues), qp_post.c, qp_sq.c, qp_requests.c, qp_recv.c
 * (what is done with them); qp_rx_io.c, qp_rx.c and qp_rx_over.c (bytes to FPDUs); qp_tx.c, qp_tx_turn.c,
 * qp_tx_msg.c and tx_batch.c (which message is next, messages as FPDUs, FPDUs in the lent buffer);
 * dirty.c (what was placed and not written back), place.c (the CPU's writes to memory).
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
#define QP_RXBUF       (128u << 10) /* receive buffers the owner lends */
#define QP_TXBUF       (256u << 10) /* send buffers the owner lends */
#define QP_PATIENT_MAX (32u << 10)  /* bytes of requests that may wait: qp_tx_may_wait() */

/* The kinds of ready-to-receive FPDU (RFC 6581 s9). */
enum qp_rtr { QP_RTR_NONE, QP_RTR_SEND, QP_RTR_WRITE, QP_RTR_READ };

/* What the start-up agreed; given to qp_start(). */
struct qp_stream {
	bool crc;          /* CRC32C generated and checked */
	bool markers;      /* the peer requests markers in what we send */
	bool consent;      /* the peer agreed to our extensions and to big FPDUs */
	bool peer_flushes; /* the peer's user issues native flushes */
	uint32_t limit_ms; /* stated in this end's HELLO: a peer that is silent for so long is lost;
			      0: never */
	uint32_t rings;  /* stated in this end's HELLO: version of the rings it can use; 0: none */
	bool takes_part; /* this end takes part in the barrier of ORIGINs, if the peer does */
	bool initiates;  /* this end is the initiator, which sends the ORIGINs */
	uint8_t instance[EXT_ID_LEN]; /* stated in this end's HELLO if it takes part */
	bool hold_tx;        /* responder without consent: no FPDU before the initiator's first */
	enum qp_rtr rtr_out; /* initiator: send this as the very first FPDU */
	enum qp_rtr rtr_in;  /* responder: the first FPDU is this, and is not for the user */
	uint16_t ird, ord;
	uint32_t mss; /* EMSS of the LLP, for the size of FPDUs to peers without consent */
};

/* The kind of job that the owner does for a request of the peer. */
enum qp_job_kind {
	QP_JOB_WRITE_BACK,
	QP_JOB_DIGEST, /* a write-back, then a digest of what is read back */
	QP_JOB_CLASS,  /* find the durability class of the range; nothing is written */
};
struct qp_job {
	enum qp_job_kind kind;
	struct mr *mr; /* until qp_on_job() it is held; if `lasting`, only referred to */
	bool lasting;  /* deregistration does not wait for it */
	void *addr;
	uint64_t len;
	bool strict;
	uint32_t alg; /* of a digest: enum vext_digest_alg */
	/*
	 * The result: a whole digest, or a class, which is only `durability`. The owner fills it in
	 * just before qp_on_job(qp, 0).
	 */
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
	/* What verbs has of a plain queue pair, which its user moves through the states of verbs,
	 * and posts to before it is started. NULL: it has the state of its stream. */
	void *plain;
	/*
	 * UC: without requests, and without a word to the peer about an error. A message that this
	 * end cannot take is lost: qp_rx_lose().
	 */
	bool unreliable;
	bool peer_rfc7306;   /* the peer knows RFC 7306 though it does not consent */
	bool strict_persist; /* persistent Flushes of volatile memory fail, for both ends */
	/*
	 * This user takes the completion of a Write or Send for "it is at the peer", as with RoCE. So
	 * it does not complete before the peer has placed or delivered it and says so in an Ack.
	 * Effective if the peer's HELLO has the same; else it completes when the LLP has all of it.
	 */
	bool acks;
	/* The owner's. notify: called from any thread, without the QP's lock: the QP may proceed
	 * (its SRQ has receives again). get: keeps the owner alive until that call is done; the QP
	 * itself may be deleted meanwhile. */
	void (*notify)(void *owner);
	void (*get)(void *owner);
	void (*async)(void *owner, enum ibv_event_type event);
	/*
	 * Called when the QP is about to fail, before any event, completion or state shows that.
	 * NULL: the owner need not know.
	 */
	void (*failing)(void *owner);
	/*
	 * Bytes that were received before the peer gave its connection up must not be placed
	 * afterwards. The owner sets `alarm`, from any thread, when the end may have come. The QP
	 * reads it before it executes an FPDU; if it is set, is_over() returns whether nothing
	 * counts any more. NULL, both: the owner has no such end.
	 */
	const atomic_uint *alarm;
	bool (*is_over)(void *owner);
	void *owner;
};

/* What a program sees of a queue pair. Both begin with the same members. */
struct qp_face {
	struct ibv_qp_ex ex; /* its functions are set if it has a builder */
	void *builder;       /* the owner's, of work requests that are built by calls; or NULL */
};

struct qp; /* defined in qp_impl.h, for this room only; begins with struct ibv_qp */

int qp_new(const struct qp_config *cfg, struct qp **out);
/* Stops all operations, releases all holds, drops the QP's completions. No job may be under way. */
void qp_delete(struct qp *qp);
/*
 * Completions may go to this taker directly until the taker is NULL again. Meanwhile its thread
 * holds the QP's lock.
 */
void qp_set_taker(struct qp *qp, struct cq_taker *taker);
struct ibv_qp *qp_ibv(struct qp *qp);
/* Of a queue pair of any type. */
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
/* -> SQD: accept no new work requests; what was posted still goes out. */
void qp_drain(struct qp *qp);
/*
 * The reason for which the owner will end the stream: the vendor_err of all requests that are
 * unfinished then. A later reason changes nothing.
 */
void qp_set_link_cause(struct qp *qp, int err);
/* -> ERR, without a Terminate: every work request ends with `status` first, then WR_FLUSH_ERR. */
void qp_fail(struct qp *qp, enum ibv_wc_status status);
/* Likewise, as the peer is gone. */
void qp_fail_lost(struct qp *qp);
/*
 * Of an unreliable one whose stream has ended: what is posted completes and is lost, as it is on a
 * network without the peer. A Bind or Local Invalidate is executed; one that has to wait for another
 * connection stays posted, with all after it, until the next call. Others: nothing happens.
 */
void qp_give_away(struct qp *qp);
/*
 * The stream ended. Inside an FPDU that is an error; on an FPDU boundary it is the peer's
 * disconnect.
 */
void qp_on_eof(struct qp *qp);
/*
 * Of a queue pair that meets its peer by itself: leave a stream for another one, with what is
 * posted. First qp_quiet(): nothing refers to memory any more, and the owner takes its buffers
 * back. Then qp_rewind(): it is in INIT again. It must not have failed.
 */
void qp_quiet(struct qp *qp);
void qp_rewind(struct qp *qp);
/*
 * The number of Reads, atomics and other requests that may be outstanding, once the stream is in
 * full operation.
 */
void qp_limit_requests(struct qp *qp, uint32_t ord);
uint64_t qp_traffic(const struct qp *qp);        /* grows with the messages of both users */
bool qp_has_posted(const struct qp *qp);         /* sends without a completion */
enum ibv_qp_state qp_state(const struct qp *qp); /* the state that the user sees */
bool qp_is_failed(const struct qp *qp);
/* A plain one: the user has moved it, but neither to ERR (qp_fail()) nor to RESET. In SQD no posted
 * request is begun. notify_drained: an event reports when those that were begun are finished. */
void qp_move(struct qp *qp, enum ibv_qp_state state, bool notify_drained);
bool qp_is_draining(const struct qp *qp); /* in SQD, and they are not */
/* Which requests of the peer it executes: IBV_ACCESS_REMOTE_*. A new plain one: none; others: all. */
void qp_permit(struct qp *qp, unsigned access);
/*
 * A plain one, to RESET, without a stream: `fresh`, which is used up, takes its place at the same
 * address. What is posted is dropped without completions, and so are completions that nothing has
 * polled, as other devices do.
 */
void qp_replace(struct qp *qp, struct qp *fresh);
/* The work that the owner has to do: a set of QP_DUE_*. */
enum {
	QP_DUE_FAILED = 1,  /* the stream has to end */
	QP_DUE_RECEIVE = 2, /* it takes bytes */
	QP_DUE_SEND = 4,    /* it has bytes */
	QP_DUE_JOB = 8,     /* qp_next_job() */
	QP_DUE_LINK = 16,   /* qp_link_take() */
};
unsigned qp_due(const struct qp *qp);
/* Of all that is due to be sent there is only an Ack: it may wait a moment for a message to join. */
bool qp_owes_ack_only(const struct qp *qp);
/* Nothing is due but QP_DUE_RECEIVE, as after most messages. */
bool qp_is_calm(const struct qp *qp);
/* What the user can have seen so far: Writes of the peer in its memory, and completions. */
struct qp_news {
	uint64_t written, completed;
};
struct qp_news qp_news(const struct qp *qp);
/* Nothing posted is unsent and no request of ours is unanswered. */
bool qp_is_idle(const struct qp *qp);
/*
 * Posted requests may still change the peer's memory, as no answer proves that they have done so.
 */
bool qp_leaves_writes(const struct qp *qp);
/* Failed, and the Terminate (if any) is sent: the LLP can be closed. */
bool qp_tx_is_done(const struct qp *qp);
/* The first error was one of this end's memory or queues. */
bool qp_cause_is_local(const struct qp *qp);
/* The peer's first FPDU has arrived. */
bool qp_has_received(const struct qp *qp);
/* The first Terminate sent or received, or NULL. */
const struct terminate *qp_terminate(const struct qp *qp, bool *sent);
/* The peer's HELLO. NULL: it has not come; or none comes, as the peer did not consent. */
const struct ext_hello *qp_peer_hello(const struct qp *qp);
/*
 * The ORIGIN (doc/wire.md s6). Both ends take part: known with the peer's HELLO. The initiator
 * posts one that asks and waits for its answer, as often as it likes; the last one does not ask,
 * and the users' requests follow it.
 */
bool qp_takes_part(const struct qp *qp);
int qp_origin_post(struct qp *qp, const struct ext_origin *origin); /* 0 or -ENOMEM */
bool qp_origin_answered(struct qp *qp, struct ext_answer *answer);  /* returns each answer once */
/*
 * Responder: returns an ORIGIN that has come, once; the caller frees it. Until then nothing more is
 * received; messages of the user are not received until qp_origin_accept(). NULL: there is none.
 */
bool qp_origin_is_here(const struct qp *qp);
struct ext_origin *qp_origin_take(struct qp *qp);
void qp_origin_accept(struct qp *qp);
void qp_origin_answer(struct qp *qp, enum ext_origin_status status, uint32_t detail);
/* This end begins an orderly end. What the peer sends until its own end is still accepted. */
void qp_leave(struct qp *qp);
bool qp_peer_leaves(const struct qp *qp);
/*
 * VEXT_CAP_*: the operations that the peer can execute. Known once the QP is started and the peer's
 * HELLO has come.
 */
uint32_t qp_caps(const struct qp *qp);

/* Posting: 0 or a positive errno, like the verbs calls. *bad is the first refused request. */
int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* If qp_rx_waits_for_receive() is true, the caller calls qp_rx_resume() next. */
int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Post several work requests, of verbs and beyond: all of them (*posted is n), or none (0). */
int qp_post_list(struct qp *qp, const struct vext_wr *wrs, int n, int *posted);

/*
 * The owner lends the buffers: it gives one before rx or tx if *_needs_buf() is true, and takes
 * back what *_reclaim() returns.
 */
bool qp_rx_needs_buf(const struct qp *qp);
void qp_rx_lend(struct qp *qp, void *buf); /* QP_RXBUF bytes */
void *qp_rx_reclaim(struct qp *qp);        /* NULL while in use */
bool qp_tx_needs_buf(const struct qp *qp); /* there is something to send, and no buffer */
void qp_tx_lend(struct qp *qp, void *buf); /* QP_TXBUF bytes */
void *qp_tx_reclaim(struct qp *qp);        /* NULL while unsent bytes are in it */

/* Bytes that came before a buffer was lent (after a start-up frame); at most QP_RXBUF. */
void qp_rx_push(struct qp *qp, const void *bytes, size_t len);
/* The memory in the list is the owner's until qp_rx_got() (0 if nothing came) or qp_rx_fault(), one
 * of which follows; registered memory is held until then. After a failure it is a place to drain
 * the stream into. */
int qp_rx_want(struct qp *qp, struct iovec iov[QP_RX_IOV]);
/*
 * The number of bytes that qp_rx_want() returned in registered memory, which may vanish: the length
 * of the first entry, or 0.
 */
size_t qp_rx_direct(const struct qp *qp);
void qp_rx_got(struct qp *qp, size_t len);
void qp_rx_fault(struct qp *qp);
/*
 * The peer has given its connection up. Of the bytes that it has sent before, and that
 * qp_rx_got() brings from now on, only a Terminate counts. The owner reads what the link still has
 * and then ends the stream.
 */
void qp_rx_give_up(struct qp *qp);
/*
 * Instead of qp_rx_want(): parse bytes where they lie, in memory that the peer may write to.
 * Returns the number of bytes that were taken. An incomplete FPDU is not taken, unless it is large;
 * the rest of a large one goes through qp_rx_want(). Nothing is taken unless qp_rx_is_in_place():
 * no CRC, nothing buffered.
 */
bool qp_rx_is_in_place(const struct qp *qp);
size_t qp_rx_in_place(struct qp *qp, const void *bytes, size_t len);
/* No more bytes are taken until a receive is posted. */
bool qp_rx_is_stalled(const struct qp *qp);
/*
 * Take more Sends without a receive. Called after a long stall, because the peer's end may follow
 * these Sends.
 */
void qp_rx_widen(struct qp *qp);
/* Are there bytes that wait for a receive to be posted? */
bool qp_rx_waits_for_receive(const struct qp *qp);
/* The number of the peer's requests that have come and are not answered. */
uint32_t qp_requests(const struct qp *qp);
/* Free the memory for requests of the peer, after none has come for a while. */
void qp_requests_trim(struct qp *qp);
/*
 * May the next qp_tx_gather(), or the send of the bytes that it returns, load from memory whose
 * `can_stall` is set? Or may qp_tx_sent() execute a request that does? True if in doubt.
 */
bool qp_tx_can_stall(struct qp *qp);
/* Go on with bytes that are buffered: a receive was posted, or a stall may be over. */
void qp_rx_resume(struct qp *qp);

/* What there is to send. */
enum qp_patience {
	QP_AWAITED,     /* must not wait for the next post */
	QP_WRITES_WAIT, /* a few Writes without a completion may, and Sends before them */
	QP_SENDS_WAIT,  /* a few Sends without a completion may */
};
/* What may wait must not wait for long, since the peer may look at its memory. */
enum qp_patience qp_tx_may_wait(const struct qp *qp);
int qp_tx_gather(struct qp *qp, struct iovec iov[QP_TX_IOV]);
void qp_tx_sent(struct qp *qp, size_t len);
/*
 * Instead of qp_tx_gather(): build short messages that can be sent now in memory of the link, which
 * the peer may write to. Returns the number of bytes. The link takes all of them, and then the
 * caller calls qp_tx_sent(). Other messages go through qp_tx_gather().
 */
size_t qp_tx_in_place(struct qp *qp, void *to, size_t room);
void qp_tx_fault(struct qp *qp); /* the memory of a source vanished (EFAULT) */
/*
 * The bytes that a failed QP still has to send: FPDUs that are begun, and the Terminate. The caller
 * frees *bytes, which is NULL with length 0 if there is nothing, or no memory. Afterwards the QP
 * has nothing to send.
 */
size_t qp_tx_take_rest(struct qp *qp, uint8_t **bytes);
/*
 * The heartbeat of a peer that consents. qp_ping() asks it to answer, and announces our limit;
 * qp_pong() answers without being asked. A ping of the peer is answered without a call.
 */
void qp_ping(struct qp *qp, uint32_t limit_ms);
void qp_pong(struct qp *qp);
uint32_t qp_peer_limit_ms(const struct qp *qp); /* 0: unknown */
/*
 * The way to another link for the same stream (doc/wire.md s6, "Link"). The owner decides what the
 * steps mean; the QP sends and receives them in order. If too many wait to be sent, or to be taken,
 * a further one replaces the last.
 */
struct qp_link_msg {
	unsigned step; /* EXT_LINK_*; of a later version, too */
	uint8_t token[EXT_LINK_TOKEN];
};
#define QP_LINK_SENT 0                                     /* step: this end's SWITCH is sent */
bool qp_link_take(struct qp *qp, struct qp_link_msg *msg); /* false: there is none */
void qp_link_post(struct qp *qp, const struct qp_link_msg *msg);
/*
 * After the step SENT nothing is sent until this call; everything after it goes over the other
 * link.
 */
void qp_link_tx_switched(struct qp *qp);
/*
 * After the peer's SWITCH nothing is received until this call; everything after it comes from the
 * other link.
 */
void qp_link_rx_switched(struct qp *qp);
/* Instead of that: there is no other link, so end the stream by a Terminate. */
void qp_link_refuse(struct qp *qp);
/*
 * A word that the QP reads when it reads cfg.alarm. QP_GIVEN_UP in it: the peer has given up. NULL:
 * there is no such word.
 */
#define QP_GIVEN_UP 1
void qp_watch_given_up(struct qp *qp, const atomic_uint *word);
void qp_link_note(struct qp *qp, unsigned state); /* enum shm_state: for the counters */
/*
 * A region is going away: copy the bytes that half-sent FPDUs still need of it, and let it go.
 * forget: bytes that were placed there cannot be written back any more, even if the region is
 * `lasting`.
 */
void qp_detach_mr(struct qp *qp, struct mr *mr, bool forget);

/*
 * Take a job. There is at most one at a time, as the requests of a stream are executed in order.
 * False: there is none.
 */
bool qp_next_job(struct qp *qp, struct qp_job *job);
void qp_on_job(struct qp *qp, int status); /* 0 or -errno */

#endif
