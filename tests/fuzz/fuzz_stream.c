/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start-up of a stream with any peer, in either role: the bytes are cut anywhere, the peer closes,
 * time passes, and the user makes any call. The product's own code carries out the results.
 *
 *   input = configuration, then steps: an opcode byte, and for bytes their number
 *
 * One bit of the configuration adds a queue pair that takes part in the barrier of ORIGINs; the
 * connection is then not established before the barrier permits it.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "softrnic/stream/stream.h"
#include "softrnic/proto/mpa.h"

#define MSS 1448

struct rig {
	struct ibv_context context;
	struct ibv_pd pd;
	struct mr_table *mrs;
	struct cq cq;
};

struct fuzz {
	struct stream *s;
	struct rig rig;
	struct qp *qp; /* NULL: the stream has no queue pair and no barrier */
	unsigned names, asked, answered;
	enum stream_fence verdict;
	bool responds, opened; /* opened: the peer's last ORIGIN has been processed */
	struct stream_update u;
	const uint8_t *in; /* bytes that the peer has sent and this end has not taken yet */
	size_t in_len;
	bool sends, closed;
	unsigned finals, redials;
	bool established;
	uint64_t now;
	uint8_t out[MPA_START_MAX]; /* bytes that this end has sent since the last dial */
	size_t out_len;
};

/* The barrier permits the connection only after each question has an answer. */
static void check_turn(const struct fuzz *f)
{
	if (f->qp && qp_takes_part(f->qp))
		EXPECT(f->responds ? f->opened : f->asked == f->answered);
}

static void on_event(void *owner, enum stream_event event, int status)
{
	struct fuzz *f = owner;

	switch (event) {
	case STREAM_EV_CONNECT_REQUEST:
	case STREAM_EV_REPLIED:
		break;
	case STREAM_EV_ESTABLISHED:
		EXPECT(!f->established);
		f->established = true;
		check_turn(f);
		break;
	case STREAM_EV_DISCONNECTED:
	case STREAM_EV_LOST:
	case STREAM_EV_REJECTED:
	case STREAM_EV_UNREACHABLE:
	case STREAM_EV_CONNECT_ERROR:
	case STREAM_EV_DEAD:
		EXPECT(++f->finals == 1);
		break;
	}
}

static void *on_get_buf(void *owner, enum stream_buf kind)
{
	struct fuzz *f = owner;

	return f->qp ? malloc(kind == STREAM_BUF_RX ? QP_RXBUF : QP_TXBUF) : NULL;
}

static void on_put_buf(void *owner, enum stream_buf kind, void *buf)
{
	EXPECT(((struct fuzz *)owner)->qp);
	free(buf);
}

static uint64_t on_unacknowledged(void *owner)
{
	return 0;
}

static uint64_t on_now(void *owner)
{
	return ((struct fuzz *)owner)->now;
}

static bool on_may_touch(void *owner)
{
	return true;
}

static size_t put(struct fuzz *f, const struct iovec *iov)
{
	size_t n = iov->iov_len < f->in_len ? iov->iov_len : f->in_len;

	memcpy(iov->iov_base, f->in, n);
	f->in += n;
	f->in_len -= n;
	return n;
}

static bool on_receive(void *owner, struct stream_update *u)
{
	struct fuzz *f = owner;
	struct stream_rx rx;
	size_t n = 0;

	if (f->in_len == 0 || !stream_rx_begin(f->s, &rx, u))
		return false;
	for (int i = 0; i < rx.n && f->in_len > 0; i++)
		n += put(f, &rx.iov[i]);
	EXPECT(n > 0);
	stream_rx_end(f->s, (ssize_t)n, f->now, u);
	return true;
}

/* Whatever the peer sends, a start-up frame of this end is well formed. */
static void check_frame(struct fuzz *f, const struct iovec *iov)
{
	struct mpa_start start;
	const uint8_t *pdata;

	EXPECT(f->out_len + iov->iov_len <= sizeof(f->out));
	memcpy(f->out + f->out_len, iov->iov_base, iov->iov_len);
	f->out_len += iov->iov_len;
	EXPECT(mpa_start_decode(f->out, f->out_len, &start, &pdata) > 0);
}

static bool on_send(void *owner, struct stream_update *u)
{
	struct fuzz *f = owner;
	struct iovec iov[QP_TX_IOV];
	size_t sum = 0;
	int n;

	if (!f->sends)
		return false;
	n = stream_tx_begin(f->s, iov, u);
	if (n == 0)
		return false;
	EXPECT(f->qp || n == 1);
	if (!f->qp)
		check_frame(f, &iov[0]);
	for (int i = 0; i < n; i++)
		sum += iov[i].iov_len;
	stream_tx_end(f->s, (ssize_t)sum, u);
	return true;
}

static bool on_job(void *owner, struct stream_update *u)
{
	EXPECT(!"a job without a region");
	return false;
}

static void on_nothing(void *owner)
{
}

static void on_close(void *owner)
{
	struct fuzz *f = owner;

	EXPECT(!f->closed);
	f->closed = true;
}

static void on_redial(void *owner)
{
	struct fuzz *f = owner;

	EXPECT(++f->redials <= 2);
	f->out_len = 0;
}

static void on_deadline(void *owner, uint64_t at)
{
	EXPECT(at > 0);
}

/* --- the barrier ---------------------------------------------------------------------------- */

static bool on_origin(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *o)
{
	struct fuzz *f = owner;

	o->serial = 1000;
	o->asks = f->names > 0;
	for (; o->n < f->names; o->n++)
		o->ranges[o->n] = (struct ext_range_of_serials){2 * o->n + 1, 2 * o->n + 1};
	f->asked += o->asks;
	return true;
}

static void on_fenced(void *owner, const struct ext_origin *o)
{
	struct fuzz *f = owner;

	EXPECT(o->asks && o->n == f->names);
	EXPECT(++f->answered == f->asked);
	f->names /= 2; /* assume that half of the former connections have ended meanwhile */
}

static enum stream_fence on_identify(void *owner, const struct ext_origin *o)
{
	struct fuzz *f = owner;

	EXPECT(!f->opened && o->n <= EXT_ORIGIN_RANGES);
	if (!o->asks && f->verdict != STREAM_FENCE_CUT) {
		f->opened = true;
		return STREAM_FENCE_DONE;
	}
	return f->verdict;
}

static const struct stream_host host = {
	.get_buf = on_get_buf,
	.put_buf = on_put_buf,
	.unacknowledged_ns = on_unacknowledged,
	.now = on_now,
	.may_touch = on_may_touch,
	.event = on_event,
	.receive = on_receive,
	.send = on_send,
	.start_job = on_job,
	.stop_job = on_nothing,
	.fin = on_nothing,
	.close = on_close,
	.redial = on_redial,
	.set_deadline = on_deadline,
	.origin = on_origin,
	.fenced = on_fenced,
	.identify = on_identify,
};

static void rig_open(struct fuzz *f)
{
	struct rig *rig = &f->rig;
	struct qp_config cfg = {
		.pd = &rig->pd,
		.send_cq = &rig->cq,
		.recv_cq = &rig->cq,
		.qp_num = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};

	rig->pd.context = &rig->context;
	EXPECT(mr_table_new(&rig->mrs) == 0 && cq_init(&rig->cq, 16) == 0);
	cfg.mrs = rig->mrs;
	EXPECT(qp_new(&cfg, &f->qp) == 0);
	stream_attach_qp(f->s, f->qp);
}

static void rig_close(struct fuzz *f)
{
	EXPECT(stream_detach_qp(f->s, &f->u) == f->qp);
	qp_delete(f->qp);
	cq_fini(&f->rig.cq);
	mr_table_delete(f->rig.mrs);
}

static void check(struct fuzz *f)
{
	const struct qp_stream *agreed = stream_agreed(f->s);
	enum stream_state state;

	stream_perform(f->s, &f->u);
	state = stream_state(f->s);
	EXPECT(f->closed == (state == STREAM_CLOSED));
	if (state != STREAM_LIVE)
		return;
	EXPECT(f->established);
	EXPECT(agreed->ird <= 128 && agreed->ord <= 128);
	EXPECT(!agreed->consent || (agreed->rtr_in == QP_RTR_NONE && !agreed->hold_tx));
}

static struct stream_config config_of(uint8_t bits, struct fuzz *f)
{
	return (struct stream_config){
		.role = bits & 1 ? STREAM_RESPONDER : STREAM_INITIATOR,
		.crc = bits & 2,
		.offer_consent = bits & 4,
		.user_flushes = bits & 8,
		.p2p = bits & 16,
		.revision = bits & 32 ? 1 : 2,
		.connect_ns = 10 * NSEC_PER_SEC,
		.request_ns = 5 * NSEC_PER_SEC,
		.drain_ns = 3 * NSEC_PER_SEC,
		.takes_part = bits & 64,
		.host = &host,
		.owner = f,
	};
}

static void step(struct fuzz *f, uint8_t op, struct rcursor *c)
{
	struct stream_params params = {.ird = op, .ord = op / 2, .pdata_len = op};
	size_t len;

	switch (op % (f->qp ? 16 : 12)) {
	default: /* most opcodes: deliver bytes of the peer */
		len = rcursor_u8(c);
		len = len < rcursor_left(c) ? len : rcursor_left(c);
		f->in = rcursor_bytes(c, len);
		f->in_len = len;
		stream_look(f->s, &f->u);
		break;
	case 4:
		stream_rx_end(f->s, 0, f->now, &f->u);
		break;
	case 5:
		stream_rx_end(f->s, op & 64 ? -ECONNRESET : -ETIMEDOUT, f->now, &f->u);
		break;
	case 6:
		stream_on_dialed(f->s, MSS, f->now, &f->u);
		break;
	case 7:
		stream_accept(f->s, &params, MSS, f->now, &f->u);
		break;
	case 8:
		stream_reject(f->s, params.pdata, op, f->now, &f->u);
		break;
	case 9:
		stream_disconnect(f->s, f->now, &f->u);
		break;
	case 10:
		f->now += NSEC_PER_SEC;
		stream_on_time(f->s, f->now, &f->u);
		break;
	case 11:
		f->sends = true;
		stream_look(f->s, &f->u);
		break;
	case 12:
		if (f->responds)
			stream_fence_end(f->s, f->now, &f->u);
		break;
	case 13:
		if (f->responds)
			stream_cut_off(f->s, &f->u);
		break;
	case 14:
		f->verdict = (enum stream_fence)(op / 16 % (STREAM_FENCE_CUT + 1));
		break;
	case 15:
		if (f->asked == f->answered)
			f->names = op / 16 * 4;
		break;
	}
	check(f);
	f->sends = false;
	f->in_len = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rcursor c = rcursor_init(data, len);
	uint8_t bits = rcursor_u8(&c);
	struct fuzz f = {.now = 1};
	struct stream_config cfg = config_of(bits, &f);
	struct stream_params params = {.ird = bits, .ord = bits, .pdata_len = bits};
	enum stream_state state;

	f.responds = cfg.role == STREAM_RESPONDER;
	EXPECT(stream_new(&cfg, &f.s) == 0);
	if (cfg.takes_part)
		rig_open(&f);
	if (cfg.role == STREAM_INITIATOR) {
		EXPECT(stream_connect(f.s, &params, f.now, &f.u) == 0);
		stream_on_dialed(f.s, MSS, f.now, &f.u);
	} else {
		stream_on_incoming(f.s, f.now, &f.u);
	}
	while (rcursor_left(&c) > 0)
		step(&f, rcursor_u8(&c), &c);
	/* Whatever its state, the stream waits for the peer only for a limited time. */
	for (int i = 0; i < 3; i++) {
		f.now += 3600 * NSEC_PER_SEC;
		stream_on_time(f.s, f.now, &f.u);
		check(&f);
	}
	state = stream_state(f.s);
	EXPECT(state == STREAM_REQ_RCVD || state == STREAM_LIVE || state == STREAM_CLOSED);
	if (f.qp)
		rig_close(&f);
	stream_delete(f.s);
	return 0;
}
