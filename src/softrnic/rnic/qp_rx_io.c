/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses the memory into which the owner receives bytes. Without CRC the rest of a large payload
 * is received directly to the registered memory. After that payload only its trailer and the next
 * header are read, so that the next payload can be received directly, too.
 *
 * Bytes for memory that can be made persistent always go through the buffer, because the kernel may
 * stop within a word: at the end of the received bytes, or when an interrupt stops its copy.
 *
 * Bytes for memory that can stall go through the buffer, too. If a system call faults in such
 * memory, the kernel holds its lock of all mappings of the process while the call waits, so mmap()
 * waits in every thread. A store by the CPU takes no such lock.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "softrnic/rnic/qp_impl.h"

/* up to this length, unparsed bytes are moved to the front of the buffer */
#define RX_MOVE_CHEAP 2048u
/* number of bytes to read after a large message; payload among them is copied once more */
#define RX_AFTER_BULK 4096u

/* --- what to read next -------------------------------------------------------------------- */

void qp_rx_free_own_buf(struct qp_rx *rx)
{
	if (!rx->own_buf || qp_rx_buffered(rx) > 0)
		return;
	free(rx->buf);
	rx->buf = NULL;
	rx->own_buf = false;
	rx->head = rx->tail = 0;
}

static void rx_take_lent_back(struct qp_rx *rx)
{
	if (rx->lent_mr)
		mr_release(rx->lent_mr);
	rx->lent_mr = NULL;
	rx->lent_len = 0;
}

static int rx_want_buf(struct qp_rx *rx, uint32_t max, struct iovec *iov)
{
	uint32_t room = QP_RXBUF - rx->tail;

	*iov = (struct iovec){.iov_base = rx->buf + rx->tail, .iov_len = room < max ? room : max};
	return 1;
}

static void rx_make_room(struct qp_rx *rx)
{
	uint32_t have = qp_rx_buffered(rx);
	const uint8_t *p = rx->buf + rx->head;
	size_t whole =
		have < MPA_LENGTH_LEN ? RX_UNTAGGED_FRAME : mpa_fpdu_len((size_t)p[0] << 8 | p[1]);

	if (have > RX_MOVE_CHEAP && rx->head + whole <= QP_RXBUF)
		return;
	memmove(rx->buf, p, have);
	rx->head = 0;
	rx->tail = have;
}

/* Number of bytes to read after the end of an FPDU. It is small enough that the next payload can be
 * received directly to its place. */
static uint32_t rx_next_head(const struct qp_rx *rx)
{
	return rx->exact ? 0 : RX_TAGGED_FRAME;
}

/* Number of bytes that are missing from the FPDU that begins in the buffer. */
static uint32_t rx_missing(const uint8_t *p, uint32_t have)
{
	if (have < MPA_LENGTH_LEN)
		return MPA_LENGTH_LEN - have;
	return (uint32_t)mpa_fpdu_len((size_t)p[0] << 8 | p[1]) - have;
}

/* If the region was persistent a moment ago (ibv_rereg_mr), the buffer may contain a part of a word.
 * Bytes that are received directly would overtake this part. */
static bool rx_may_be_direct(const struct qp_rx *rx)
{
	const struct mr_backing *backing = &rx->near.mr->backing;

	return !backing->durable && !backing->can_stall && qp_rx_buffered(rx) == 0;
}

/* Receive the rest of a payload directly to its place, and only so few bytes after it that they
 * contain no further payload. */
static int rx_want_direct(struct qp *qp, struct iovec iov[QP_RX_IOV])
{
	struct qp_rx *rx = &qp->rx;
	struct rx_seg *seg = &rx->seg;
	uint32_t left = seg->payload - seg->done, n;
	void *ptr;

	n = seg->rx->target(qp, seg, left, &ptr);
	if (n == 0 || !rx_may_be_direct(rx)) {
		mr_release_near(&rx->near);
		return n == 0 ? 0 : rx_want_buf(rx, QP_RXBUF, iov);
	}
	rx->lent_mr = rx->near.mr; /* lent_mr takes over the hold on the region */
	rx->near.held = false;
	rx->lent_ptr = ptr;
	rx->lent_len = n;
	iov[0] = (struct iovec){.iov_base = ptr, .iov_len = n};
	if (n < left)
		return 1;
	return 1 + rx_want_buf(rx, seg->trailer + rx_next_head(rx), &iov[1]);
}

/* Returns the number of bytes to read into the buffer. */
static uint32_t rx_buf_share(const struct qp *qp)
{
	const struct qp_rx *rx = &qp->rx;
	const uint8_t *p = rx->buf + rx->head;
	uint32_t have = qp_rx_buffered(rx);

	/* a lost payload goes through the buffer */
	if (rx->seg.active && rx->seg.done < rx->seg.payload)
		return QP_RXBUF;
	if (rx->seg.active)
		return rx->seg.trailer - have + rx_next_head(rx);
	/*
	 * The header of a large Send is 4 bytes longer than a Write's, so it may be incomplete
	 * after the bytes that were read with the last trailer. Read its missing bytes.
	 */
	if (!qp->stream.crc && have >= MPA_LENGTH_LEN && have < RX_UNTAGGED_FRAME &&
	    ((uint32_t)p[0] << 8 | p[1]) >= QP_RX_DIRECT_MIN + RX_UNTAGGED_FRAME)
		return RX_UNTAGGED_FRAME - have;
	if (rx->exact)
		return rx_missing(p, have);
	/* With CRC, further bytes after a large FPDU would have to be moved before that FPDU is
	 * complete. So read only the next header with it. */
	if (qp->stream.crc && have >= MPA_LENGTH_LEN && rx_missing(p, have) >= QP_RX_DIRECT_MIN)
		return rx_missing(p, have) + RX_TAGGED_FRAME;
	return rx->bulk ? RX_AFTER_BULK : QP_RXBUF;
}

int qp_rx_want(struct qp *qp, struct iovec iov[QP_RX_IOV])
{
	struct qp_rx *rx = &qp->rx;
	int n;

	if (!rx->buf || rx->eof || rx->stalled || rx->stop || qp->state == IBV_QPS_INIT)
		return 0;
	rx_make_room(rx);
	if (!qp_is_failed(qp) && !rx->over && rx->seg.active && !rx->seg.lost &&
	    rx->seg.done < rx->seg.payload) {
		n = rx_want_direct(qp, iov);
		if (n > 0)
			return n;
		qp_settle(qp);
		rx_make_room(rx);
	}
	/* After a failure later bytes are read and dropped, so that the LLP can close in order. */
	return rx_want_buf(rx, qp_is_failed(qp) || rx->over ? QP_RXBUF : rx_buf_share(qp), iov);
}

size_t qp_rx_direct(const struct qp *qp)
{
	return qp->rx.lent_len;
}

void qp_rx_got(struct qp *qp, size_t len)
{
	struct qp_rx *rx = &qp->rx;
	uint32_t direct = len < rx->lent_len ? (uint32_t)len : rx->lent_len;

	qp->counters.rx_reads += len > 0;
	qp->counters.rx_bytes += len;
	if (qp->link.rx_switched)
		qp->counters.shm_rx_bytes += len;
	if (qp_is_failed(qp)) {
		rx_take_lent_back(rx);
		return;
	}
	if (direct > 0)
		rx->bulk = true;
	else if (len >= RX_AFTER_BULK)
		rx->bulk = false;
	if (direct > 0) {
		qp->counters.rx_direct_bytes += direct;
		rx->seg.done += direct;
		if (!rx->seg.rx->is_answer)
			qp_rx_placed(qp, rx->lent_mr, rx->lent_ptr, direct);
	}
	rx_take_lent_back(rx);
	rx->tail += (uint32_t)len - direct;
	assert(rx->tail <= QP_RXBUF);
	if (!qp->fault.due)
		qp_rx_parse(qp);
	qp_settle(qp);
}

void qp_rx_fault(struct qp *qp)
{
	rx_take_lent_back(&qp->rx);
	if (!qp_is_failed(qp))
		qp_rx_fault_at(qp, &qp->rx.seg);
	qp_settle(qp);
}

/* --- the buffer --------------------------------------------------------------------------- */

bool qp_rx_needs_buf(const struct qp *qp)
{
	return !qp->rx.buf && !qp->rx.eof && qp->state != IBV_QPS_INIT;
}

void qp_rx_lend(struct qp *qp, void *buf)
{
	assert(!qp->rx.buf);
	qp->rx.buf = buf;
	qp->rx.head = qp->rx.tail = 0;
}

void *qp_rx_reclaim(struct qp *qp)
{
	void *buf = qp->rx.buf;

	if (qp->rx.own_buf || qp_rx_buffered(&qp->rx) > 0)
		return NULL;
	qp->rx.buf = NULL;
	return buf;
}

void qp_rx_push(struct qp *qp, const void *bytes, size_t len)
{
	struct qp_rx *rx = &qp->rx;

	if (qp_is_failed(qp) || len == 0)
		return;
	if (!rx->buf) {
		rx->buf = malloc(QP_RXBUF);
		rx->own_buf = rx->buf;
		rx->head = rx->tail = 0;
	}
	if (!rx->buf || len > QP_RXBUF - rx->tail) {
		qp_refuse(qp, TERM_MPA_LOCAL_CATASTROPHIC, NULL, 0, NULL);
	} else {
		memcpy(rx->buf + rx->tail, bytes, len);
		rx->tail += (uint32_t)len;
		qp->counters.rx_bytes += len;
		qp_rx_parse(qp);
	}
	qp_settle(qp);
}

bool qp_rx_is_stalled(const struct qp *qp)
{
	return qp->rx.stalled;
}

void qp_rx_resume(struct qp *qp)
{
	if (!qp_recv_is_open(qp))
		return;
	if (!qp_is_failed(qp) && qp_is_over(qp)) {
		qp_given_up(qp);
		qp_settle(qp);
		return;
	}
	qp_recv_deliver(qp);
	if (!qp->fault.due && !qp_is_failed(qp))
		qp_rx_parse(qp);
	qp_settle(qp);
}

void qp_rx_widen(struct qp *qp)
{
	if (!qp->rx.stalled || qp->recv.park.wide)
		return;
	qp->recv.park.wide = true;
	qp_rx_resume(qp);
}

void qp_rx_stop(struct qp *qp)
{
	struct qp_rx *rx = &qp->rx;

	rx->seg.active = false;
	rx->stalled = false;
	rx->head = rx->tail;
	qp_rx_free_own_buf(rx);
}

void qp_rx_fini(struct qp *qp)
{
	rx_take_lent_back(&qp->rx);
	qp_rx_stop(qp);
}
