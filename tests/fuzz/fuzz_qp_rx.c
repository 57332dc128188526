/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Input: bytes that a peer sends to a started queue pair. The first byte chooses the stream's
 * options. Either the bytes arrive unchanged, or each record becomes a well-formed FPDU, which
 * reaches deeper code. Such an FPDU has real STags, and the expected MSN unless the record contains
 * an MSN. Memory outside the regions, and the region without rights, must never change. A
 * consenting peer has already sent its HELLO, unless the options leave the HELLO to the input.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/safecopy.h"
#include "lib/post.h"
#include "softrnic/proto/ddp.h"
#include "softrnic/proto/ext.h"
#include "softrnic/proto/ext_hello.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/rnic/mw.h"
#include "softrnic/rnic/qp.h"
#include "softrnic/rnic/rnic.h"

#define REGION 16384u
#define GUARD  4096u
#define FILL   0xa5

/* Combinations that have no meaning of their own choose other cases. F_RTR with F_CONSENT: no RTR
 * exists, so no HELLO has arrived yet. F_HOLD with F_CONSENT: nothing is held, so both ends ask for
 * Acks. All three: an unreliable queue pair, without a HELLO yet. */
enum { F_CRC = 1, F_CONSENT = 2, F_PEER_FLUSHES = 4, F_RAW = 8, F_HOLD = 16, F_RTR = 32 };
enum { F_UNRELIABLE = F_CONSENT | F_HOLD | F_RTR };

struct input {
	const uint8_t *p;
	size_t left;
};

struct side {
	struct ibv_context context;
	struct ibv_pd pd, other_pd;
	struct mr_table *mrs;
	struct cq scq, rcq;
	struct qp *qp;
	uint8_t *mem; /* GUARD | REGION | GUARD | REGION without rights | GUARD */
	struct mr *mr, *readonly, *foreign;
	struct mw *window; /* window on a part of the first region */
	uint32_t msn[8];
	/* offset of the last Read's sink, and the sink's length in units of 16 bytes */
	uint8_t last_read;
	void *rxbuf, *txbuf;
	struct qp_job wb;
	struct vext_digest digest; /* the results of a VERIFY and of a QUERY */
	uint32_t durability;
	bool wb_running;
	bool crc, in_place;
};

static uint8_t *region(struct side *s, unsigned i)
{
	return s->mem + GUARD + i * (REGION + GUARD);
}

static bool is_untouched(const uint8_t *p, size_t len)
{
	return p[0] == FILL && memcmp(p, p + 1, len - 1) == 0;
}

static void check_guards(struct side *s)
{
	EXPECT(is_untouched(s->mem, GUARD));
	EXPECT(is_untouched(region(s, 0) + REGION, GUARD + REGION + GUARD));
}

static uint8_t next_u8(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->p++;
}

static uint32_t next_u16(struct input *in)
{
	uint32_t hi = next_u8(in);

	return hi << 8 | next_u8(in);
}

/* --- callbacks of the owner --------------------------------------------------------------- */

static void ignore_event(void *owner, enum ibv_event_type event)
{
}

static void open_window(struct side *s, int access)
{
	struct mw_bind bind = {
		.pd = &s->pd, .lkey = s->mr->ibv.lkey, .addr = 64, .len = 512, .access = access};

	EXPECT(mw_new(s->mrs, &s->pd, IBV_MW_TYPE_1, &s->window) == 0);
	bind.window = bind.stag = s->window->ibv.rkey;
	EXPECT(mw_bind(s->mrs, &bind) == 0);
}

/* Close the window in the way of a program that invalidates it. */
static void close_window(struct side *s)
{
	struct mr *binding = mw_kill(s->window);

	qp_detach_mr(s->qp, binding, false);
	mr_wait_idle(binding);
	mw_unbind(binding);
	mr_unref(binding);
	mw_delete(s->window);
}

static void open_side(struct side *s, uint8_t flags)
{
	struct qp_stream stream = {
		.crc = flags & F_CRC,
		.consent = flags & F_CONSENT,
		.peer_flushes = flags & F_PEER_FLUSHES,
		.hold_tx = flags & F_HOLD && !(flags & F_CONSENT),
		.rtr_in = flags & F_RTR && !(flags & F_CONSENT) ? (enum qp_rtr)(flags >> 6)
								: QP_RTR_NONE,
		.ird = 4,
		.ord = 4,
		.mss = 1448,
	};
	struct qp_config cfg = {
		.qp_num = 1,
		.async = ignore_event,
		.pd = &s->pd,
		.acks = flags & F_HOLD,
		.unreliable = (flags & F_UNRELIABLE) == F_UNRELIABLE,
	};
	/* Without F_RTR the upper flag bits have no meaning, so they choose the memory's
	 * backing. */
	struct mr_backing backing = {
		.persist = s, .durable = flags & 0xc0, .lasting = flags & 0x80};
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

	s->crc = flags & F_CRC;
	s->in_place = flags & 0x40;
	s->pd.context = &s->context;
	s->mem = malloc(3 * GUARD + 2 * REGION);
	memset(s->mem, FILL, 3 * GUARD + 2 * REGION);
	EXPECT(safecopy_setup() == 0 && mr_table_new(&s->mrs) == 0);
	EXPECT(cq_init(&s->scq, 64) == 0 && cq_init(&s->rcq, 64) == 0);
	cfg.mrs = s->mrs;
	cfg.send_cq = &s->scq;
	cfg.recv_cq = &s->rcq;
	cfg.cap = (struct ibv_qp_cap){16, 16, 2, 2, 64};
	EXPECT(qp_new(&cfg, &s->qp) == 0 && qp_start(s->qp, &stream) == 0);
	EXPECT(mr_new(s->mrs, &s->pd, region(s, 0), REGION, 0, all, &backing, &s->mr) == 0);
	EXPECT(mr_new(s->mrs, &s->pd, region(s, 1), REGION, 0, IBV_ACCESS_REMOTE_READ, &backing,
		      &s->readonly) == 0);
	EXPECT(mr_new(s->mrs, &s->other_pd, region(s, 1), REGION, 0, all, &backing, &s->foreign) ==
	       0);
	open_window(s, all);
	s->rxbuf = aligned_alloc(64, QP_RXBUF);
	s->txbuf = aligned_alloc(64, QP_TXBUF);
	for (int q = 0; q < 8; q++)
		s->msn[q] = 1;
}

static void drop_mr(struct side *s, struct mr *mr)
{
	mr_kill(mr);
	qp_detach_mr(s->qp, mr, !mr->backing.lasting);
	mr_wait_idle(mr);
	mr_delete(mr);
}

static void close_side(struct side *s)
{
	if (s->wb_running)
		qp_on_job(s->qp, 0);
	if (!s->rxbuf)
		s->rxbuf = qp_rx_reclaim(s->qp);
	if (!s->txbuf)
		s->txbuf = qp_tx_reclaim(s->qp);
	EXPECT(s->rxbuf && s->txbuf); /* a failed QP has released its buffers */
	close_window(s);
	drop_mr(s, s->mr);
	drop_mr(s, s->readonly);
	drop_mr(s, s->foreign);
	qp_delete(s->qp);
	cq_fini(&s->scq);
	cq_fini(&s->rcq);
	mr_table_delete(s->mrs);
	free(s->rxbuf);
	free(s->txbuf);
	free(s->mem);
}

/* Let the queue pair parse the bytes in place, as with a link in shared memory. The copy has
 * exactly their length, so that a sanitizer reports a read past the end. */
static size_t feed_in_place(struct side *s, const uint8_t *bytes, size_t len)
{
	uint8_t *lies;
	size_t taken;

	if (!s->in_place || !qp_rx_is_in_place(s->qp))
		return 0;
	lies = malloc(len);
	memcpy(lies, bytes, len);
	taken = qp_rx_in_place(s->qp, lies, len);
	EXPECT(taken <= len);
	free(lies);
	return taken;
}

static void feed(struct side *s, const uint8_t *bytes, size_t len)
{
	struct iovec iov[QP_RX_IOV];

	while (len > 0) {
		size_t got = feed_in_place(s, bytes, len);
		int n;

		bytes += got;
		len -= got;
		if (got > 0)
			continue;
		if (qp_rx_needs_buf(s->qp)) {
			qp_rx_lend(s->qp, s->rxbuf);
			s->rxbuf = NULL;
		}
		n = qp_rx_want(s->qp, iov);
		for (int i = 0; i < n && got < len; i++) {
			size_t part = iov[i].iov_len < len - got ? iov[i].iov_len : len - got;

			memcpy(iov[i].iov_base, bytes + got, part);
			got += part;
		}
		if (n > 0)
			qp_rx_got(s->qp, got);
		if (!s->rxbuf)
			s->rxbuf = qp_rx_reclaim(s->qp);
		if (got == 0)
			return; /* the queue pair takes no more bytes */
		bytes += got;
		len -= got;
	}
}

/* Gather once, and send at most `max` bytes of the result. */
static void drain(struct side *s, size_t max)
{
	struct iovec iov[QP_TX_IOV];
	size_t total = 0;
	int n;

	if (qp_tx_needs_buf(s->qp)) {
		qp_tx_lend(s->qp, s->txbuf);
		s->txbuf = NULL;
	}
	n = qp_tx_gather(s->qp, iov);
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	qp_tx_sent(s->qp, total < max ? total : max);
	if (!s->txbuf)
		s->txbuf = qp_tx_reclaim(s->qp);
}

static void post_atomic(struct side *s, uint8_t what)
{
	struct ibv_sge sge = {.addr = what, .length = 8, .lkey = s->mr->ibv.lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = what & 1 ? IBV_WR_ATOMIC_FETCH_AND_ADD
						    : IBV_WR_ATOMIC_CMP_AND_SWP},
			   *bad;

	if (what & 2)
		(void)qp_atomic_write(s->qp, 1, IBV_SEND_SIGNALED, 1, what & ~7u, "12345678");
	else
		(void)qp_post_send(s->qp, &wr, &bad);
}

static void post_flush(struct side *s, uint8_t what)
{
	enum vext_flush_type type = (what & 3) ? what & 3 : VEXT_FLUSH_VISIBLE;

	switch (what & 0x30) {
	case 0x10:
		(void)qp_flush_all(s->qp, 1, type);
		break;
	case 0x20:
		(void)qp_verify(s->qp, 1, 1, what, what, what & 1 ? 1 : 2, &s->digest);
		break;
	case 0x30:
		(void)qp_query_class(s->qp, 1, 1, what, what, &s->durability);
		break;
	default:
		(void)qp_flush(s->qp, 1, 0, 1, what, what, type);
		break;
	}
}

static void post(struct side *s, uint8_t what)
{
	struct ibv_sge sge = {.addr = what, .length = what * 16u, .lkey = s->mr->ibv.lkey};
	struct ibv_send_wr swr = {.sg_list = &sge,
				  .num_sge = 1,
				  .opcode = what & 1 ? IBV_WR_RDMA_READ : IBV_WR_SEND,
				  .send_flags = what & 2 ? IBV_SEND_SIGNALED : 0},
			   *sbad;
	struct ibv_recv_wr rwr = {.sg_list = &sge, .num_sge = what & 1}, *rbad;

	if (!(what & 12) && what & 1)
		s->last_read = what;
	if (what & 4) {
		(void)qp_post_recv(s->qp, &rwr, &rbad);
		if (qp_rx_waits_for_receive(s->qp))
			qp_rx_resume(s->qp);
	} else if ((what & 0x48) == 0x48)
		post_atomic(s, what);
	else if (what & 8)
		post_flush(s, what);
	else
		(void)qp_post_send(s->qp, &swr, &sbad);
}

static void write_back(struct side *s, uint8_t what)
{
	static const int statuses[4] = {0, 0, -5, -14};

	if (s->wb_running) {
		s->wb_running = false;
		if (s->wb.kind != QP_JOB_WRITE_BACK)
			*s->wb.answer = (struct vext_digest){.durability = 1 + what % 3};
		qp_on_job(s->qp, statuses[what & 3]);
	} else {
		s->wb_running = qp_next_job(s->qp, &s->wb);
	}
}

/* --- the peer ----------------------------------------------------------------------------- */

static uint32_t stag_of(const struct side *s, uint8_t which)
{
	switch (which & 7) {
	case 0:
		return s->readonly->ibv.rkey;
	case 1:
		return s->foreign->ibv.rkey;
	case 2:
		return which;
	case 7:
		return s->window->ibv.rkey;
	default:
		return s->mr->ibv.rkey;
	}
}

static struct ddp_hdr hdr_of(struct side *s, struct input *in)
{
	uint8_t op = next_u8(in), how = next_u8(in);
	const struct rdmap_op *row = &rdmap_ops[op & 0xf];
	struct ddp_hdr hdr = {
		.tagged = row->tagged != ((how & 0x70) == 0x70),
		.last = op & 0x80,
		.version = (how & 0x0f) == 0x0f ? 2 : 1,
		.ulp = (uint8_t)(0x40 | (op & 0xf)),
		.ulp_word = stag_of(s, how),
		.stag = stag_of(s, how),
		.to = next_u16(in),
		.qn = op & 0x40 ? how : row->qn,
	};

	hdr.msn = s->msn[hdr.qn & 7];
	hdr.mo = op & 0x20 ? (uint32_t)hdr.to : 0;
	if (!hdr.tagged && hdr.last)
		s->msn[hdr.qn & 7]++;
	if (op & 0x10)
		hdr.to |= (uint64_t)next_u8(in) << 56;
	return hdr;
}

/* RDMAP headers name a region by values that only the target has, so fill them in. */
static void put_stags(struct side *s, const struct ddp_hdr *hdr, uint8_t *payload, size_t len)
{
	uint8_t op = hdr->ulp & 0xf;
	size_t at = op == RDMAP_READ_REQ ? 16 : op == RDMAP_ATOMIC_REQ ? 8 : 4;
	bool has = op == RDMAP_READ_REQ || op == RDMAP_EXT_REQ || op == RDMAP_ATOMIC_REQ;
	uint32_t stag;

	if (hdr->tagged || hdr->qn != DDP_QN_REQUEST || !has || len < at + 4)
		return;
	stag = stag_of(s, payload[at]);
	for (int i = 0; i < 4; i++)
		payload[at + (size_t)i] = (uint8_t)(stag >> (24 - 8 * i));
	memset(payload + at + 4, 0, len - at - 4 < 6 ? len - at - 4 : 6);
}

/* If only one length is right, return this length in most cases. */
static size_t length_of(const struct side *s, struct ddp_hdr *hdr, size_t byte)
{
	static const uint8_t extension[8] = {
		EXT_RANGE_LEN,     EXT_ALL_LEN,   EXT_ANSWER_LEN,   EXT_ANSWER_LEN + EXT_DIGEST_LEN,
		EXT_HEARTBEAT_LEN, EXT_HELLO_LEN, EXT_WORD_LEN + 8, 3};
	const struct rdmap_op *row = &rdmap_ops[hdr->ulp & 0xf];

	if (row->hdr_len && byte < 0xe0)
		return row->extension ? extension[byte & 7] : row->hdr_len;
	if ((hdr->ulp & 0xf) == RDMAP_READ_RESP && byte < 0x80) {
		hdr->to = s->last_read;
		return s->last_read * 16u;
	}
	return byte < 0xf0 ? byte : (byte & 0xf) * 4096;
}

static size_t fpdu_finish(const struct side *s, uint8_t *buf, size_t ulpdu)
{
	size_t whole = mpa_fpdu_len(ulpdu);
	struct iovec all = {.iov_base = buf, .iov_len = whole - MPA_CRC_LEN};

	memset(buf + MPA_LENGTH_LEN + ulpdu, 0, 8);
	buf[0] = (uint8_t)(ulpdu >> 8);
	buf[1] = (uint8_t)ulpdu;
	if (s->crc)
		mpa_crc_encode(buf + whole - MPA_CRC_LEN, mpa_crc(&all, 1, whole - MPA_CRC_LEN));
	return whole;
}

static void say_hello(struct side *s)
{
	struct ext_hello hello = {
		.major = EXT_HELLO_MAJOR, .kinds = ~0ull, .max_ulpdu = MPA_ULPDU_MAX, .acks = 1};
	struct ddp_hdr hdr = {.last = true,
			      .version = DDP_VERSION,
			      .ulp = rdmap_ctrl(RDMAP_EXT_REQ),
			      .qn = DDP_QN_CONTROL,
			      .msn = s->msn[DDP_QN_CONTROL]++};
	uint8_t buf[EXT_HELLO_MAX + 64];
	int len;

	ddp_encode(buf + MPA_LENGTH_LEN, DDP_HDR_MAX, &hdr);
	len = ext_hello_encode(buf + MPA_LENGTH_LEN + DDP_UNTAGGED_HDR, EXT_HELLO_MAX, &hello);
	EXPECT(len > 0);
	feed(s, buf, fpdu_finish(s, buf, DDP_UNTAGGED_HDR + (size_t)len));
	EXPECT(qp_peer_hello(s->qp));
}

static void fpdu(struct side *s, struct input *in)
{
	static uint8_t buf[70000];
	struct ddp_hdr hdr = hdr_of(s, in);
	size_t hdr_len = ddp_hdr_len(hdr.tagged), len = next_u8(in), whole;
	uint8_t *payload = buf + MPA_LENGTH_LEN + hdr_len;
	uint8_t split = next_u8(in);

	len = length_of(s, &hdr, len);
	memset(payload, 0, len);
	for (size_t i = 0; i < len && in->left > 0 && i < 64; i++)
		payload[i] = next_u8(in);
	put_stags(s, &hdr, payload, len);
	ddp_encode(buf + MPA_LENGTH_LEN, DDP_HDR_MAX, &hdr);
	whole = fpdu_finish(s, buf, hdr_len + len);
	if (split && split < whole) {
		feed(s, buf, split);
		feed(s, buf + split, whole - split);
	} else {
		feed(s, buf, whole);
	}
}

static void raw(struct side *s, struct input *in)
{
	while (in->left > 0) {
		size_t n = next_u8(in) + 1u;

		n = n < in->left ? n : in->left;
		feed(s, in->p, n);
		in->p += n;
		in->left -= n;
		drain(s, SIZE_MAX);
	}
}

static void records(struct side *s, struct input *in)
{
	while (in->left > 0) {
		uint8_t what = next_u8(in);

		if (what < 0xa0)
			fpdu(s, in);
		else if (what < 0xc0)
			post(s, next_u8(in));
		else if (what < 0xe0)
			drain(s, what & 1 ? SIZE_MAX : next_u8(in));
		else
			write_back(s, what);
	}
}

/* Make the queue pair give up, then feed the same input again, as FPDUs or as raw bytes. No memory
 * must change. */
static void give_up(struct side *s, struct input *in, bool is_raw)
{
	uint8_t *before = malloc(REGION);

	memcpy(before, region(s, 0), REGION);
	qp_rx_give_up(s->qp);
	if (is_raw)
		feed(s, in->p, in->left);
	while (!is_raw && in->left > 0)
		fpdu(s, in);
	EXPECT(memcmp(before, region(s, 0), REGION) == 0);
	free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = {data, len}, again;
	struct side s = {0};
	uint8_t flags = next_u8(&in);

	again = in;
	open_side(&s, flags);
	if ((flags & (F_CONSENT | F_RTR)) == F_CONSENT)
		say_hello(&s);
	if (flags & F_RAW)
		raw(&s, &in);
	else
		records(&s, &in);
	drain(&s, SIZE_MAX);
	give_up(&s, &again, flags & F_RAW);
	qp_on_eof(s.qp);
	check_guards(&s);
	EXPECT(s.durability <= VEXT_DURABILITY_DAX);
	EXPECT(s.digest.alg <= VEXT_DIGEST_BLAKE2B && s.digest.len <= UINT8_MAX);
	EXPECT(qp_is_failed(s.qp));
	close_side(&s);
	return 0;
}
