/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * qp.h -- a connected queue pair on one byte stream, reliable (RC) or unreliable (UC).
 *
 * This code does no I/O, reads no clock and takes no lock of the QP: the caller of each function
 * below holds the lock of the stream that owns the QP. The owner moves bytes and work:
 *
 *   receive:     n = qp_rx_want(qp, iov)   memory for the next bytes; 0 = do not read now
 *                qp_rx_got(qp, len)        the bytes arrived (qp_rx_fault(qp): memory was gone)
 *   send:        n = qp_tx_gather(qp, iov) the bytes to send now; 0 = none
 *                qp_tx_sent(qp, len)       the LLP took `len` bytes
 *   jobs:        qp_next_job(qp, &job), and when the job is done qp_on_job(qp, status)
 *   tasks:       qp_due(), and qp_is_idle(), after any of these calls
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
#define QP_TX_IOV      128          /* greatest number of entries that qp_tx_gather() returns */
#define QP_RXBUF       (128u << 10) /* size of the receive buffers that the owner lends */
#define QP_TXBUF       (256u << 10) /* size of the send buffers that the owner lends */
#define QP_PATIENT_MAX (32u << 10)  /* limit of the bytes in deferred requests: qp_tx_may_wait() */

/* The kinds of ready-to-receive FPDU (RFC 6581 s9). */
enum qp_rtr { QP_RTR_NONE, QP_RTR_SEND, QP_RTR_WRITE, QP_RTR_READ };

/* The result of the start-up, for qp_start(). */
struct qp_stream {
	bool crc;          /* CRC32C is generated and checked */
	bool markers;      /* the peer requests markers in this end's output */
	bool consent;      /* the peer agreed to the extensions and to large FPDUs */
	bool peer_flushes; /* the peer's user issues native flushes */
	/* limit stated in this end's HELLO: the peer is lost after a silence of this length; 0:
	 * never */
	uint32_t limit_ms;
	uint32_t rings; /* version of rings stated in this end's HELLO; 0: no rings */
	/* this end takes part in the barrier of ORIGINs, if the peer takes part, too */
	bool takes_part;
	bool initiates; /* this end is the initiator, which sends the ORIGINs */
	/* id of this process, stated in this end's HELLO if it takes part in the barrier */
	uint8_t instance[EXT_ID_LEN];
	/* responder without consent: send no FPDU before the initiator's first FPDU has arrived */
	bool hold_tx;
	enum qp_rtr rtr_out; /* initiator: send this as the very first FPDU */
	/* responder: the first FPDU is of this kind, and is not for the user */
	enum qp_rtr rtr_in;
	uint16_t ird, ord;
	uint32_t mss; /* greatest segment of the LLP; limits FPDUs to peers without consent */
};

/* The job that the owner runs for a request of the peer. */
enum qp_job_kind {
	QP_JOB_WRITE_BACK,
	QP_JOB_DIGEST, /* a write-back, then a digest of the bytes read back */
	QP_JOB_CLASS,  /* find the durability class of the range; nothing is written */
};
struct qp_job {
	enum qp_job_kind kind;
	struct mr *mr; /* held until qp_on_job(); only referenced if `lasting` */
	bool lasting;  /* deregistration need not wait for the job */
	void *addr;
	uint64_t len;
	bool strict;
	uint32_t alg; /* for a digest: enum vext_digest_alg */
	/* Address of the result: a whole digest, or only its member `durability` for a class. The
	 * owner fills it in just before qp_on_job(qp, 0). */
	struct vext_digest *answer;
};

/* Counters of one QP, generated from one list. */
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
	struct srq *srq; /* NULL: the QP has its own receive queue */
	uint32_t qp_num;
	struct ibv_qp_cap cap; /* already checked against the device's limits by the caller */
	bool sq_sig_all;
	/* The verbs object, if this is a plain queue pair (one without an rdma_cm id). Its user
	 * moves it through the states of verbs, and posts to it before it is started. NULL: the
	 * queue pair belongs to an id, and its state follows the stream. */
	void *plain;
	/* UC: the peer's requests are not executed, and errors are not reported to the peer. A
	 * message that this end cannot accept is lost: qp_rx_lose(). */
	bool unreliable;
	bool peer_rfc7306; /* the peer supports RFC 7306 although it does not consent */
	/* persistent Flushes of volatile memory fail, this end's Flushes as well as the peer's */
	bool strict_persist;
	/*
	 * This user expects that a completed Write or Send has reached the peer, as on RoCE. So a
	 * work request completes only after the peer has placed or delivered it and has sent an
	 * Ack. This has an effect only if the peer's HELLO also announces Acks. Otherwise a work
	 * request completes after the LLP has taken all its bytes.
	 */
	bool acks;
	/*
	 * Functions of the owner. notify() is called from any thread, without the QP's lock. It
	 * reports that the QP may continue, because its SRQ has receives again. get() is called
	 * before notify() and keeps the owner alive until notify() is done; the QP itself may be
	 * deleted in between.
	 */
	void (*notify)(void *owner);
	void (*get)(void *owner);
	void (*async)(void *owner, enum ibv_event_type event);
	/* Called when the QP is about to fail, before any event, completion or state shows the
	 * failure. May be NULL. */
	void (*failing)(void *owner);
	/*
	 * After the peer gave up its connection, bytes that were received before must not be placed
	 * any more. When this may have happened, the owner sets `alarm`, from any thread. The QP
	 * reads `alarm` before it executes an FPDU, and calls is_over() if it is set. is_over()
	 * returns true if no further bytes may be executed. Both are NULL if the link cannot report
	 * such an end.
	 */
	const atomic_uint *alarm;
	bool (*is_over)(void *owner);
	void *owner;
};

/* The structures by which a program uses a queue pair. Queue pairs of all types begin with these
 * members. */
struct qp_face {
	struct ibv_qp_ex ex; /* with functions if the queue pair has a builder */
	void *builder;       /* the owner's object for building work requests, or NULL */
};

struct qp; /* defined in qp_impl.h for the files of this folder; begins with struct ibv_qp */

int qp_new(const struct qp_config *cfg, struct qp **out);
/*
 * Stops all operations, releases all holds, drops the QP's completions. No job may be in progress.
 */
void qp_delete(struct qp *qp);
/* Until a call with NULL, completions may go directly to this taker. During this time the taker's
 * thread holds the QP's lock. */
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

/* Move from INIT to RTS: the stream is in full operation. */
int qp_start(struct qp *qp, const struct qp_stream *stream);
/* Move to SQD: accept no new work requests. Posted ones are still sent. */
void qp_drain(struct qp *qp);
/* Set the reason for which the owner will end the stream. The reason becomes the vendor_err of all
 * requests that are unfinished when the stream ends. Only the first reason counts. */
void qp_set_link_cause(struct qp *qp, int err);
/* Move to ERR without a Terminate. The first unfinished work request completes with `status`, all
 * others with WR_FLUSH_ERR. */
void qp_fail(struct qp *qp, enum ibv_wc_status status);
/* Does the same as qp_fail(), with the status for a peer that is gone. */
void qp_fail_lost(struct qp *qp);
/*
 * Called for an unreliable queue pair whose stream has ended: complete the posted requests. Their
 * messages are lost, as on a network without the peer. A Bind or Local Invalidate is executed. If
 * it has to wait for another connection, it and all later requests stay posted until the next call.
 * The function does nothing for reliable queue pairs.
 */
void qp_give_away(struct qp *qp);
/*
 * Called when the stream of a queue pair that connects by a meeting (stream/meeting.h) has ended,
 * after messages of the users. No other stream follows before a reset, and nothing more is sent. An
 * unreliable queue pair completes its posted requests, see qp_give_away(). The requests of a
 * reliable queue pair stay posted until the owner fails them.
 */
void qp_lose_peer(struct qp *qp);
/* Called when the peer has closed the stream. A close within an FPDU is an error; a close between
 * two FPDUs is a disconnect by the peer. */
void qp_on_eof(struct qp *qp);
/*
 * For a queue pair that connects by a meeting (stream/meeting.h): leave a stream for another one,
 * and keep the posted requests. The owner first calls qp_quiet(). After that the queue pair refers
 * to no memory, and the owner takes its buffers back. The owner then calls qp_rewind(), which sets
 * the state INIT. The queue pair must not have failed.
 */
void qp_quiet(struct qp *qp);
void qp_rewind(struct qp *qp);
/* Set the limit of outstanding Reads, atomics and other requests, after the stream has reached full
 * operation. */
void qp_limit_requests(struct qp *qp, uint32_t ord);
/*
 * Set the user's choices for a Send that arrives without a posted receive: the time until the peer
 * retries its Send, as InfiniBand's code, and the number of retries of this end's Sends. Without
 * these calls a Send waits for ever. The calls have an effect only if both ends send Acks.
 */
void qp_set_rnr_timer(struct qp *qp, uint8_t code);
void qp_set_rnr_retry(struct qp *qp, uint8_t retries);
/* Returns true once after each change. *ns is the time that a Send may still wait; UINT64_MAX: no
 * Send waits. The owner calls qp_rnr_fail() after this time. */
bool qp_rnr_changed(struct qp *qp, uint64_t *ns);
/* Fail the queue pair: the Send that waits completes with RNR_RETRY_EXC_ERR. */
void qp_rnr_fail(struct qp *qp);
/* Returns a count that grows with each message of either user. */
uint64_t qp_traffic(const struct qp *qp);
/* are work requests of the send queue unfinished? */
bool qp_has_posted(const struct qp *qp);
enum ibv_qp_state qp_state(const struct qp *qp); /* the state that the user sees */
bool qp_is_failed(const struct qp *qp);
/*
 * For a plain queue pair: its user moves it to a state other than ERR (for ERR: qp_fail()) and
 * RESET. In SQD no posted request is begun. With notify_drained an event reports that all begun
 * requests are complete.
 */
void qp_move(struct qp *qp, enum ibv_qp_state state, bool notify_drained);
/* is the QP in SQD, with begun requests that are not complete? */
bool qp_is_draining(const struct qp *qp);
/* Choose the peer's requests that the QP executes: IBV_ACCESS_REMOTE_* flags. Before the first call
 * a plain QP executes none, and other QPs execute all. */
void qp_permit(struct qp *qp, unsigned access);
/*
 * Move a plain queue pair without a stream to RESET. The new queue pair `fresh` is moved to the
 * address of qp and replaces it. Posted requests are dropped without completions, and unpolled
 * completions are dropped, too, as on other devices.
 */
void qp_replace(struct qp *qp, struct qp *fresh);
/* The tasks of the owner: a set of QP_DUE_*. */
enum {
	QP_DUE_FAILED = 1,  /* the owner must end the stream */
	QP_DUE_RECEIVE = 2, /* the owner may receive: the QP accepts bytes */
	QP_DUE_SEND = 4,    /* the owner may send: the QP has bytes to send */
	QP_DUE_JOB = 8,     /* a job is due: qp_next_job() */
	QP_DUE_LINK = 16,   /* a message about the link is due: qp_link_take() */
	QP_DUE_RNR = 64,    /* a Send has begun or ended to wait for a receive: qp_rnr_changed() */
	QP_DUE_AGAIN = 32,  /* call qp_due() again soon: a memory window is in use */
};
unsigned qp_due(const struct qp *qp);
/* Is an Ack the only unsent message? It may be deferred for a short time, so that another message
 * can join it. */
bool qp_owes_ack_only(const struct qp *qp);
/* Is no task due except QP_DUE_RECEIVE? The result is true after most messages. */
bool qp_is_calm(const struct qp *qp);
/* Counts of changes that the user may have seen: Writes of the peer to this end's memory, and
 * completions. */
struct qp_news {
	uint64_t written, completed;
};
struct qp_news qp_news(const struct qp *qp);
/* Are all posted requests sent, and all requests of this end answered? */
bool qp_is_idle(const struct qp *qp);
/* Can posted requests still change the peer's memory? Returns true if no answer proves that they
 * are done. */
bool qp_leaves_writes(const struct qp *qp);
/* Has the QP failed, and is its Terminate (if any) sent? The LLP can be closed then. */
bool qp_tx_is_done(const struct qp *qp);
/* Was the first error in this end's memory or queues? */
bool qp_cause_is_local(const struct qp *qp);
/* Has the peer's first FPDU arrived? */
bool qp_has_received(const struct qp *qp);
/* Returns the first Terminate that was sent or received, or NULL. */
const struct terminate *qp_terminate(const struct qp *qp, bool *sent);
/* Returns the peer's HELLO, or NULL if the HELLO has not arrived or the peer did not consent. */
const struct ext_hello *qp_peer_hello(const struct qp *qp);
/*
 * The ORIGIN (doc/wire.md s6). The peer's HELLO shows whether both ends take part. The initiator
 * may repeatedly post an ORIGIN that asks for an answer, and wait for the answer. The last ORIGIN
 * asks for no answer, and the users' requests follow it.
 */
bool qp_takes_part(const struct qp *qp);
int qp_origin_post(struct qp *qp, const struct ext_origin *origin); /* 0 or -ENOMEM */
/* returns each answer only once */
bool qp_origin_answered(struct qp *qp, struct ext_answer *answer);
/*
 * For a responder. qp_origin_take() returns an arrived ORIGIN once, or NULL; the caller frees it.
 * Nothing more is received until the ORIGIN is taken, and no message of the user is received until
 * qp_origin_accept().
 */
bool qp_origin_is_here(const struct qp *qp);
struct ext_origin *qp_origin_take(struct qp *qp);
void qp_origin_accept(struct qp *qp);
void qp_origin_answer(struct qp *qp, enum ext_origin_status status, uint32_t detail);
/* Called when this end begins an orderly end of the stream. Messages that the peer sends before it
 * ends its direction are still accepted. */
void qp_leave(struct qp *qp);
bool qp_peer_leaves(const struct qp *qp);
/* Returns the operations that the peer can execute, as VEXT_CAP_* flags. Valid after qp_start() and
 * the peer's HELLO. */
uint32_t qp_caps(const struct qp *qp);

/* Posting functions return 0 or a positive errno value, like the verbs calls. *bad is the first
 * refused request. */
int qp_post_send(struct qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* The caller must check qp_rx_waits_for_receive() afterwards, and call qp_rx_resume() if it returns
 * true. */
int qp_post_recv(struct qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Post several work requests, of verbs and beyond. Either all are posted (*posted is n), or none
 * (*posted is 0). */
int qp_post_list(struct qp *qp, const struct vext_wr *wrs, int n, int *posted);

/* The owner lends the buffers. The owner must lend a buffer when *_needs_buf() returns true. A
 * buffer that *_reclaim() returns belongs to the owner again. */
bool qp_rx_needs_buf(const struct qp *qp);
void qp_rx_lend(struct qp *qp, void *buf); /* the buffer has QP_RXBUF bytes */
void *qp_rx_reclaim(struct qp *qp);        /* NULL if the buffer is in use */
bool qp_tx_needs_buf(const struct qp *qp); /* are there bytes to send, but no buffer? */
void qp_tx_lend(struct qp *qp, void *buf); /* the buffer has QP_TXBUF bytes */
void *qp_tx_reclaim(struct qp *qp);        /* NULL if the buffer contains unsent bytes */

/* Pass bytes that arrived before a buffer was lent (after a start-up frame). At most QP_RXBUF
 * bytes. */
void qp_rx_push(struct qp *qp, const void *bytes, size_t len);
/*
 * Returns memory for received bytes. The owner may use it until it calls qp_rx_got() (with 0 if
 * nothing came) or qp_rx_fault(); one of these calls must follow. Registered memory is held until
 * then. After a failure the memory serves to read and drop the rest of the stream.
 */
int qp_rx_want(struct qp *qp, struct iovec iov[QP_RX_IOV]);
/* Length of the first entry of qp_rx_want() if this entry is registered memory, which may vanish;
 * otherwise 0. */
size_t qp_rx_direct(const struct qp *qp);
void qp_rx_got(struct qp *qp, size_t len);
void qp_rx_fault(struct qp *qp);
/* Called when the peer has given up its connection. Earlier bytes of the peer may still arrive by
 * qp_rx_got(), but only a Terminate among them has an effect. The owner reads the link's remaining
 * bytes and then ends the stream. */
void qp_rx_give_up(struct qp *qp);
/*
 * May be called instead of qp_rx_want(): parse bytes in place, in memory that the peer may write
 * to. Returns the number of processed bytes. An incomplete FPDU is processed only if it is large;
 * its rest is received by qp_rx_want(). Nothing is processed unless qp_rx_is_in_place() returns
 * true, which requires that there is no CRC and nothing is buffered.
 */
bool qp_rx_is_in_place(const struct qp *qp);
size_t qp_rx_in_place(struct qp *qp, const void *bytes, size_t len);
/* Does the QP accept no bytes until a receive is posted? */
bool qp_rx_is_stalled(const struct qp *qp);
/* Accept more Sends without a receive. Called after a long stall, because the peer's FIN may follow
 * these Sends. */
void qp_rx_widen(struct qp *qp);
/* Do buffered bytes wait for a receive? */
bool qp_rx_waits_for_receive(const struct qp *qp);
/* Number of the peer's requests that have arrived and are unanswered. */
uint32_t qp_requests(const struct qp *qp);
/* Free the memory for requests of the peer. Called when no request has arrived for some time. */
void qp_requests_trim(struct qp *qp);
/* Can the next qp_tx_gather(), the send of its bytes, or a request that qp_tx_sent() executes load
 * from memory with `can_stall`? Returns true if this is unknown. */
bool qp_tx_can_stall(struct qp *qp);
/* Continue with buffered bytes. Called when a receive was posted, or when a stall may be over. */
void qp_rx_resume(struct qp *qp);

/* Which unsent messages may be deferred. */
enum qp_patience {
	QP_AWAITED, /* the messages must not be deferred */
	/* a few Writes without a completion, and Sends before them, may be deferred */
	QP_WRITES_WAIT,
	QP_SENDS_WAIT, /* a few Sends without a completion may be deferred */
};
/* Deferred messages must not wait for long, because the peer may be polling its memory. */
enum qp_patience qp_tx_may_wait(const struct qp *qp);
int qp_tx_gather(struct qp *qp, struct iovec iov[QP_TX_IOV]);
void qp_tx_sent(struct qp *qp, size_t len);
/*
 * May be called instead of qp_tx_gather(): builds the short messages that can be sent now. It
 * builds them directly in the link's memory, to which the peer may write. Returns their length. The
 * link must send all of these bytes, and the caller must then call qp_tx_sent(). Other messages are
 * sent by qp_tx_gather().
 */
size_t qp_tx_in_place(struct qp *qp, void *to, size_t room);
void qp_tx_fault(struct qp *qp); /* called when memory of gathered bytes has vanished (EFAULT) */
/*
 * The bytes that a failed QP must still send: begun FPDUs, and the Terminate. Returns their length.
 * The caller frees *bytes. It is NULL, with length 0, if there are no such bytes or no memory for
 * them. Afterwards the QP has no bytes to send.
 */
size_t qp_tx_take_rest(struct qp *qp, uint8_t **bytes);
/* The heartbeat with a consenting peer. qp_ping() sends a ping, which requests an answer and states
 * this end's limit for a silence. qp_pong() sends a pong that was not requested. The QP itself
 * answers the peer's pings. */
void qp_ping(struct qp *qp, uint32_t limit_ms);
void qp_pong(struct qp *qp);
uint32_t qp_peer_limit_ms(const struct qp *qp); /* the peer's limit for a silence; 0: unknown */
/*
 * Messages that move the stream to another link (doc/wire.md s6, "Link"). Each carries one step.
 * The owner interprets the steps; the QP sends and receives them in order. If too many steps wait
 * to be sent or taken, a further step replaces the last one.
 */
struct qp_link_msg {
	unsigned step; /* EXT_LINK_*; a peer of a later version may send other values */
	uint8_t token[EXT_LINK_TOKEN];
};
/* a step for the owner: this end's SWITCH is sent */
#define QP_LINK_SENT 0
bool qp_link_take(struct qp *qp, struct qp_link_msg *msg); /* returns false if there is no step */
void qp_link_post(struct qp *qp, const struct qp_link_msg *msg);
/*
 * After the step QP_LINK_SENT no byte is sent until this call. All later bytes use the other link.
 */
void qp_link_tx_switched(struct qp *qp);
/* After the peer's SWITCH no byte is received until this call; all later bytes come from the other
 * link. */
void qp_link_rx_switched(struct qp *qp);
/*
 * Called instead of qp_link_rx_switched() if there is no other link: end the stream by a Terminate.
 */
void qp_link_refuse(struct qp *qp);
/* Set the address of a word that the QP reads whenever it reads cfg.alarm. The bit QP_GIVEN_UP in
 * it means that the peer has given up the connection. NULL: there is no such word. */
#define QP_GIVEN_UP 1
void qp_watch_given_up(struct qp *qp, const atomic_uint *word);
void qp_link_note(struct qp *qp, unsigned state); /* record an enum shm_state for the counters */
/* Called before a region is deregistered: copy the bytes that half-sent FPDUs still need from the
 * region, and release the region. With `forget`, bytes placed in the region can no longer be
 * written back, even if the region is `lasting`. */
void qp_detach_mr(struct qp *qp, struct mr *mr, bool forget);

/* Take a job. There is at most one at a time, because the requests of a stream are executed in
 * order. Returns false if no job is due. */
bool qp_next_job(struct qp *qp, struct qp_job *job);
void qp_on_job(struct qp *qp, int status); /* 0 or -errno */

#endif
