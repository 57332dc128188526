/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/qp_pair.h"

#include <stdlib.h>
#include <string.h>

#include "base/safecopy.h"
#include "lib/post.h"
#include "lib/unit.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/rdmap.h"

/* --- life --------------------------------------------------------------------------------- */

struct pair_options pair_defaults(void)
{
	return (struct pair_options){
		.stream = {.consent = true, .peer_flushes = true, .ird = 4, .ord = 4, .mss = 1448},
		.depth = 16,
		.max_sge = 4,
		.max_inline = 64,
		.cq_size = 256,
	};
}

static void pair_on_async(void *owner, enum ibv_event_type event)
{
	struct qp_end *e = owner;

	e->asyncs++;
	e->async = event;
}

static void pair_expect_no_error(struct cq *cq)
{
	for (uint32_t i = 0; i < cq->count; i++)
		assert_int_equal(cq->ring[(cq->head + i) % cq->size].wc.status, IBV_WC_SUCCESS);
}

/* Called when a queue pair begins to fail: at this time its user must not have seen any sign of the
 * failure. */
static void pair_on_failing(void *owner)
{
	struct qp_end *e = owner;

	e->failures++;
	assert_false(qp_is_failed(e->qp));
	assert_int_equal(e->asyncs, 0);
	pair_expect_no_error(&e->scq);
	pair_expect_no_error(&e->rcq);
}

static void pair_on_notify(void *owner)
{
	((struct qp_end *)owner)->notified++;
}

static void pair_on_get(void *owner)
{
	((struct qp_end *)owner)->gets++;
}

static void pair_end_open(struct qp_end *e, struct qp_end *peer, const struct pair_options *o,
			  uint32_t num)
{
	struct qp_config cfg = {
		.qp_num = num,
		.cap = {.max_send_wr = o->depth,
			.max_recv_wr = o->depth,
			.max_send_sge = o->max_sge,
			.max_recv_sge = o->max_sge,
			.max_inline_data = o->max_inline},
		.sq_sig_all = o->sq_sig_all,
		.peer_rfc7306 = o->peer_rfc7306,
		.unreliable = o->unreliable,
		.acks = o->acks || (o->only_a_acks && num == 1),
		.async = pair_on_async,
		.failing = pair_on_failing,
		.notify = pair_on_notify,
		.get = pair_on_get,
		.owner = e,
	};

	memset(e, 0, sizeof(*e));
	e->peer = peer;
	e->pd.context = &e->context;
	assert_int_equal(safecopy_setup(), 0);
	assert_int_equal(mr_table_new(&e->mrs), 0);
	assert_int_equal(cq_init(&e->scq, o->cq_size), 0);
	assert_int_equal(cq_init(&e->rcq, o->cq_size), 0);
	if (o->srq)
		assert_int_equal(srq_init(&e->srq, o->depth, o->max_sge), 0);
	cfg.mrs = e->mrs;
	cfg.pd = &e->pd;
	cfg.send_cq = &e->scq;
	cfg.recv_cq = &e->rcq;
	cfg.srq = o->srq ? &e->srq : NULL;
	assert_int_equal(qp_new(&cfg, &e->qp), 0);
	assert_non_null(e->rxbuf = e->rxmem = aligned_alloc(64, QP_RXBUF));
	assert_non_null(e->txbuf = e->txmem = aligned_alloc(64, QP_TXBUF));
}

static void pair_end_close(struct qp_end *e)
{
	if (e->wb_running)
		end_finish_writeback(e, 0);
	qp_delete(e->qp);
	srq_fini(&e->srq);
	cq_fini(&e->scq);
	cq_fini(&e->rcq);
	mr_table_delete(e->mrs);
	free(e->rxmem);
	free(e->txmem);
	free(e->wire);
}

void pair_open(struct qp_pair *p, const struct pair_options *o)
{
	struct qp_stream a = o->stream, b = o->stream;

	pair_end_open(&p->a, &p->b, o, 1);
	pair_end_open(&p->b, &p->a, o, 2);
	a.consent = b.consent = o->stream.consent && !o->hold_b && o->rtr == QP_RTR_NONE;
	a.initiates = true;
	a.rtr_out = o->rtr;
	b.rtr_in = o->rtr;
	b.hold_tx = o->hold_b;
	assert_int_equal(qp_start(p->a.qp, &a), 0);
	assert_int_equal(qp_start(p->b.qp, &b), 0);
	if (a.consent && !o->before_hello)
		pair_run(p);
}

void pair_close(struct qp_pair *p)
{
	pair_end_close(&p->a);
	pair_end_close(&p->b);
}

/* --- bytes between the ends --------------------------------------------------------------- */

static void pair_wire_add(struct qp_end *e, const void *bytes, size_t len)
{
	if (e->wire_len + len > e->wire_room) {
		e->wire_room = 2 * (e->wire_len + len);
		e->wire = realloc(e->wire, e->wire_room);
		assert_non_null(e->wire);
	}
	memcpy(e->wire + e->wire_len, bytes, len);
	e->wire_len += len;
}

/* Write a short message straight into the link's memory, as a link in shared memory permits. */
static size_t end_put(struct qp_end *e)
{
	/* a block that ends where the writable bytes end, so that a sanitizer reports a write past
	 * them */
	uint8_t *to = malloc(e->put_room);
	size_t len;

	assert_non_null(to);
	len = qp_tx_in_place(e->qp, to, e->put_room);
	pair_wire_add(e, to, len);
	free(to);
	qp_tx_sent(e->qp, len);
	return len;
}

size_t end_gather(struct qp_end *e, size_t max, int *n_iov)
{
	struct iovec iov[QP_TX_IOV];
	size_t taken = 0;
	int n;

	if (e->put_room > 0 && (taken = end_put(e)) > 0)
		return taken;
	if (qp_tx_needs_buf(e->qp)) {
		assert_non_null(e->txbuf);
		qp_tx_lend(e->qp, e->txbuf);
		e->txbuf = NULL;
	}
	n = qp_tx_gather(e->qp, iov);
	for (int i = 0; i < n && taken < max; i++) {
		size_t part = iov[i].iov_len < max - taken ? iov[i].iov_len : max - taken;

		pair_wire_add(e, iov[i].iov_base, part);
		taken += part;
	}
	qp_tx_sent(e->qp, taken);
	if (!e->txbuf)
		e->txbuf = qp_tx_reclaim(e->qp);
	if (n_iov)
		*n_iov = n;
	return taken;
}

void end_send_all(struct qp_end *e)
{
	while (end_gather(e, SIZE_MAX, NULL) > 0)
		;
}

static size_t pair_scatter(const struct iovec *iov, int n, const uint8_t *from, size_t len)
{
	size_t done = 0;

	for (int i = 0; i < n && done < len; i++) {
		size_t part = iov[i].iov_len < len - done ? iov[i].iov_len : len - done;

		memcpy(iov[i].iov_base, from + done, part);
		done += part;
	}
	return done;
}

static void pair_wire_drop(struct qp_end *e, size_t len)
{
	memmove(e->wire, e->wire + len, e->wire_len - len);
	e->wire_len -= len;
}

size_t end_take_in_place(struct qp_end *e, size_t len)
{
	uint8_t *lies;
	size_t taken;

	if (!qp_rx_is_in_place(e->qp))
		return 0;
	/* a block that ends where the readable bytes end, so that a sanitizer reports a read past
	 * them */
	lies = malloc(len);
	assert_non_null(lies);
	memcpy(lies, e->peer->wire, len);
	taken = qp_rx_in_place(e->qp, lies, len);
	free(lies);
	pair_wire_drop(e->peer, taken);
	return taken;
}

size_t end_take(struct qp_end *e, size_t max)
{
	struct qp_end *from = e->peer;
	size_t len = from->wire_len < max ? from->wire_len : max, taken;
	struct iovec iov[QP_RX_IOV];
	int n;

	if (len == 0)
		return 0;
	taken = e->in_place ? end_take_in_place(e, len) : 0;
	if (taken > 0)
		return taken;
	if (qp_rx_needs_buf(e->qp)) {
		assert_non_null(e->rxbuf);
		qp_rx_lend(e->qp, e->rxbuf);
		e->rxbuf = NULL;
	}
	n = qp_rx_want(e->qp, iov);
	len = pair_scatter(iov, n, from->wire, len);
	if (n > 0)
		qp_rx_got(e->qp, len);
	if (!e->rxbuf)
		e->rxbuf = qp_rx_reclaim(e->qp);
	pair_wire_drop(from, len);
	return len;
}

void end_inject(struct qp_end *e, const void *bytes, size_t len)
{
	pair_wire_add(e->peer, bytes, len);
	while (e->peer->wire_len > 0)
		assert_true(end_take(e, SIZE_MAX) > 0);
}

void end_finish_writeback(struct qp_end *e, int status)
{
	assert_true(e->wb_running);
	e->wb_running = false;
	if (e->wb.kind != QP_JOB_WRITE_BACK)
		*e->wb.answer = e->wb_answer;
	qp_on_job(e->qp, status);
}

void end_run_writebacks(struct qp_end *e)
{
	while (!e->wb_running && qp_next_job(e->qp, &e->wb)) {
		e->wb_running = true;
		if (e->wb_count < WB_LOG)
			e->wb_log[e->wb_count] = e->wb;
		e->wb_count++;
		if (!e->wb_hold)
			end_finish_writeback(e, e->wb_status);
	}
}

static size_t pair_end_turn(struct qp_end *e, size_t chunk)
{
	size_t moved = end_gather(e, chunk, NULL);

	moved += end_take(e, chunk);
	end_run_writebacks(e);
	return moved;
}

void pair_run_chunked(struct qp_pair *p, size_t chunk)
{
	size_t moved;

	do {
		moved = pair_end_turn(&p->a, chunk) + pair_end_turn(&p->b, chunk);
		moved += pair_end_turn(&p->a, chunk) + pair_end_turn(&p->b, chunk);
	} while (moved > 0);
}

void pair_run(struct qp_pair *p)
{
	pair_run_chunked(p, SIZE_MAX);
}

/* --- memory and work requests ------------------------------------------------------------- */

struct mr *end_reg(struct qp_end *e, void *buf, size_t len, int access)
{
	struct mr_backing backing = {.persist = &e->wb, .durable = true};
	struct mr *mr;

	assert_int_equal(mr_new(e->mrs, &e->pd, buf, len, (uintptr_t)buf, access, &backing, &mr),
			 0);
	return mr;
}

void end_dereg(struct mr *mr)
{
	mr_kill(mr);
	mr_wait_idle(mr);
	mr_delete(mr);
}

int end_post(struct qp_end *e, enum ibv_wr_opcode op, uint64_t wr_id, const struct mr *local,
	     size_t off, size_t len, struct mr *remote, size_t remote_off, unsigned flags)
{
	struct ibv_sge sge = {
		.addr = local ? local->iova + off : 0,
		.length = (uint32_t)len,
		.lkey = local ? local->ibv.lkey : 0,
	};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = wr_id,
			.opcode = op,
			.sg_list = &sge,
			.num_sge = len > 0,
			.send_flags = flags & NOSIG ? flags & ~NOSIG : flags | IBV_SEND_SIGNALED,
		};

	if (remote) {
		wr.wr.rdma.remote_addr = remote->iova + remote_off;
		wr.wr.rdma.rkey = remote->ibv.rkey;
	}
	return qp_post_send(e->qp, &wr, &bad);
}

int end_write(struct qp_end *e, uint64_t wr_id, const struct mr *local, size_t off, size_t len,
	      struct mr *remote, size_t remote_off)
{
	return end_post(e, IBV_WR_RDMA_WRITE, wr_id, local, off, len, remote, remote_off, 0);
}

int end_read(struct qp_end *e, uint64_t wr_id, const struct mr *local, size_t off, size_t len,
	     struct mr *remote, size_t remote_off)
{
	return end_post(e, IBV_WR_RDMA_READ, wr_id, local, off, len, remote, remote_off, 0);
}

int end_send(struct qp_end *e, uint64_t wr_id, const struct mr *local, size_t off, size_t len)
{
	return end_post(e, IBV_WR_SEND, wr_id, local, off, len, NULL, 0, 0);
}

int end_recv(struct qp_end *e, uint64_t wr_id, const struct mr *local, size_t off, size_t len)
{
	struct ibv_sge sge = {
		.addr = local ? local->iova + off : 0,
		.length = (uint32_t)len,
		.lkey = local ? local->ibv.lkey : 0,
	};
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = local != NULL};

	int err;

	if (e->srq.waiters.next)
		return srq_post(&e->srq, &wr, &bad);
	err = qp_post_recv(e->qp, &wr, &bad);
	if (qp_rx_waits_for_receive(e->qp))
		qp_rx_resume(e->qp);
	return err;
}

int end_flush(struct qp_end *e, uint64_t wr_id, struct mr *remote, size_t off, size_t len,
	      bool persistent)
{
	return qp_flush(e->qp, wr_id, IBV_SEND_SIGNALED, remote->ibv.rkey, remote->iova + off, len,
			persistent ? VEXT_FLUSH_PERSISTENT : VEXT_FLUSH_VISIBLE);
}

/* --- expectations ------------------------------------------------------------------------- */

struct ibv_wc next_wc(struct cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(cq_poll(cq, 1, &wc), 1);
	return wc;
}

void expect_wc(struct cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = next_wc(cq);

	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.status, status);
}

void expect_no_wc(struct cq *cq)
{
	struct ibv_wc wc;

	assert_int_equal(cq_poll(cq, 1, &wc), 0);
}

void expect_terminated(struct qp_end *e, bool sent, unsigned error)
{
	bool sent_by_e;
	const struct terminate *t = qp_terminate(e->qp, &sent_by_e);

	assert_true(qp_is_failed(e->qp));
	assert_int_equal(e->failures, 1);
	assert_non_null(t);
	assert_int_equal(terminate_error(t), error);
	assert_int_equal(sent_by_e, sent);
}

/* --- raw FPDUs ---------------------------------------------------------------------------- */

size_t fpdu_make(uint8_t *to, const struct ddp_hdr *hdr, const void *payload, size_t len, bool crc)
{
	size_t ulpdu = ddp_hdr_len(hdr->tagged) + len, size = mpa_fpdu_len(ulpdu);
	struct iovec all = {.iov_base = to, .iov_len = size};

	memset(to, 0, size);
	to[0] = (uint8_t)(ulpdu >> 8);
	to[1] = (uint8_t)ulpdu;
	ddp_encode(to + MPA_LENGTH_LEN, DDP_HDR_MAX, hdr);
	if (len)
		memcpy(to + MPA_LENGTH_LEN + ddp_hdr_len(hdr->tagged), payload, len);
	if (crc)
		mpa_crc_encode(to + size - MPA_CRC_LEN, mpa_crc(&all, 1, size - MPA_CRC_LEN));
	return size;
}

struct ddp_hdr hdr_tagged(unsigned opcode, uint32_t stag, uint64_t to, bool last)
{
	return (struct ddp_hdr){
		.tagged = true,
		.last = last,
		.version = DDP_VERSION,
		.ulp = rdmap_ctrl((enum rdmap_opcode)opcode),
		.stag = stag,
		.to = to,
	};
}

struct ddp_hdr hdr_untagged(unsigned opcode, uint32_t qn, uint32_t msn, uint32_t mo, bool last)
{
	return (struct ddp_hdr){
		.last = last,
		.version = DDP_VERSION,
		.ulp = rdmap_ctrl((enum rdmap_opcode)opcode),
		.qn = qn,
		.msn = msn,
		.mo = mo,
	};
}

void end_inject_fpdu(struct qp_end *e, const struct ddp_hdr *hdr, const void *payload, size_t len)
{
	uint8_t *fpdu = malloc(len + 64);

	assert_non_null(fpdu);
	end_inject(e, fpdu, fpdu_make(fpdu, hdr, payload, len, true));
	free(fpdu);
}
