/* SPDX-License-Identifier: BSD-3-Clause */
/* startup.c -- receives and sends start-up frames, and takes the steps of both roles (RFC 5044
 * s7.1). */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "softrnic/stream/stream_impl.h"
#include "softrnic/proto/ddp.h"
#include "softrnic/proto/mpa_marker.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/proto/terminate.h"

/* longest private data of peers that are not softrnic: siw and cxgb4 keep 4 + length in 8 bits */
#define PDATA_OTHERS 251

int stream_frames_new(struct stream *s)
{
	if (!s->frames)
		s->frames = malloc(sizeof(*s->frames));
	if (!s->frames)
		return -ENOMEM;
	memset(s->frames, 0, sizeof(*s->frames));
	s->frames->in_need = MPA_START_HDR;
	return 0;
}

void stream_frames_delete(struct stream *s)
{
	free(s->frames);
	s->frames = NULL;
}

int stream_frame_put(struct stream *s, const struct mpa_start *start, const void *pdata)
{
	struct stream_frames *f = s->frames;
	int len = mpa_start_encode(f->out, sizeof(f->out), start, pdata);

	if (len < 0)
		return len;
	f->out_len = (size_t)len;
	f->out_sent = 0;
	return 0;
}

void stream_frame_put_terminate(struct stream *s, enum term_error error, bool markers)
{
	struct terminate term = terminate_of(error);
	struct ddp_hdr ddp = {
		.last = true,
		.version = DDP_VERSION,
		.ulp = rdmap_ctrl(RDMAP_TERMINATE),
		.qn = DDP_QN_TERMINATE,
		.msn = DDP_FIRST_MSN,
	};
	struct stream_frames *f = s->frames;
	struct wcursor c = wcursor_init(f->out, sizeof(f->out));
	uint8_t ulpdu[DDP_UNTAGGED_HDR + TERM_MAX_LEN], crc[MPA_CRC_LEN];
	struct iovec covered = {.iov_base = f->out};
	int len = ddp_encode(ulpdu, sizeof(ulpdu), &ddp);

	len += terminate_encode(ulpdu + len, sizeof(ulpdu) - (size_t)len, &term);
	/* Full operation begins with a marker, which points at itself (RFC 5044 s4.3). */
	if (markers)
		wcursor_be32(&c, 0);
	wcursor_be16(&c, (uint16_t)len);
	wcursor_bytes(&c, ulpdu, (size_t)len);
	wcursor_bytes(&c, "\0\0\0", mpa_pad((size_t)len));
	covered.iov_len = wcursor_len(&c);
	mpa_crc_encode(crc, mpa_crc(&covered, 1, covered.iov_len));
	wcursor_bytes(&c, crc, sizeof(crc));
	assert(!c.bad);
	f->out_len = wcursor_len(&c);
	f->out_sent = 0;
}

/* Memory for the frame's missing bytes. It never extends past the frame's end, because later bytes
 * belong to the QP, which receives them directly into their destination. */
struct iovec stream_frame_room(struct stream *s)
{
	struct stream_frames *f = s->frames;

	return (struct iovec){.iov_base = f->in + f->in_len, .iov_len = f->in_need - f->in_len};
}

static void stream_on_foreign_frame(struct stream *s)
{
	stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, EPROTONOSUPPORT,
			      "the peer does not speak MPA");
}

static void stream_on_frame(struct stream *s, uint64_t now)
{
	struct mpa_start start;
	const uint8_t *pdata;
	int len = mpa_start_decode(s->frames->in, s->frames->in_len, &start, &pdata);
	bool initiator = s->cfg.role == STREAM_INITIATOR;

	if (len == -EBADMSG)
		stream_on_foreign_frame(s);
	else if (len < 0)
		stream_startup_failed(s, STREAM_EV_CONNECT_ERROR, -len, "malformed start-up frame");
	else if (start.reply != initiator) /* both ends are initiators, or both are responders */
		stream_startup_failed(
			s, STREAM_EV_CONNECT_ERROR, EPROTO,
			"start-up frame of the same role: both ends connect, or both accept");
	else if (initiator)
		stream_initiator_on_reply(s, &start, pdata, now);
	else
		stream_responder_on_request(s, &start, pdata, now);
}

void stream_frame_got(struct stream *s, size_t len, uint64_t now)
{
	struct stream_frames *f = s->frames;
	int total;

	f->in_len += len;
	if (f->in_len < f->in_need) {
		/* The bytes belong to another protocol, so the rest of a start-up frame will never
		 * arrive. */
		if (s->cfg.role == STREAM_INITIATOR && !mpa_start_may_begin(f->in, f->in_len))
			stream_on_foreign_frame(s);
		return;
	}
	total = mpa_start_decode_header(f->in);
	if (total > (int)f->in_len)
		f->in_need = (size_t)total;
	else
		stream_on_frame(s, now);
}

int stream_keep_pdata(struct stream *s, const struct mpa_start *start, const uint8_t *pdata)
{
	if (start->pd_len > STREAM_PDATA_MAX)
		return -EMSGSIZE;
	s->remote.pdata_len = (uint8_t)start->pd_len;
	memcpy(s->remote.pdata, pdata, start->pd_len);
	return 0;
}

void stream_warn_pdata(const struct stream *s, uint8_t len)
{
	if (len > PDATA_OTHERS && !s->agreed.consent)
		LOG_WARNING_LIMITED(
			"stream %p: %u bytes of private data: peers that do not run this software "
			"refuse more than %d",
			(const void *)s, len, PDATA_OTHERS);
}

int stream_start_qp(struct stream *s)
{
	int ret = s->qp ? qp_start(s->qp, &s->agreed) : 0;

	if (!ret)
		s->started = true;
	if (stream_runs_qp(s))
		s->traffic = qp_traffic(s->qp);
	return ret;
}

uint32_t stream_limit_ms(const struct stream *s)
{
	uint64_t ms = s->cfg.liveness_ns / NSEC_PER_MS;

	return s->cfg.liveness_ns != CLOCK_NEVER && ms < UINT32_MAX ? (uint32_t)ms : 0;
}

static void stream_go_live(struct stream *s, const char *why, uint64_t now)
{
	stream_set_state(s, STREAM_LIVE, why);
	stream_liveness_begin(s, now);
	stream_push_event(s, STREAM_EV_ESTABLISHED, 0);
	stream_settle(s, now); /* a Terminate may have arrived after the HELLO */
}

void stream_settle_hello(struct stream *s, uint64_t now)
{
	if (qp_peer_hello(s->qp) && stream_origin_settles(s, now)) {
		stream_go_live(s, "HELLO", now);
	} else if (s->state == STREAM_HELLO && stream_qp_is_failed(s)) {
		s->deadline = stream_after(now, s->cfg.drain_ns);
		stream_set_state(s, STREAM_CLOSING, "no HELLO");
		stream_end(s, STREAM_EV_CONNECT_ERROR, -EPROTO);
	}
}

void stream_on_frames_done(struct stream *s, const char *why, uint64_t now)
{
	if (!s->agreed.consent || !s->qp) {
		stream_go_live(s, why, now);
		return;
	}
	stream_set_state(s, STREAM_HELLO, why);
	stream_settle_hello(s, now);
}

int stream_join_self(struct stream *s, const struct stream_params *params, uint64_t now,
		     struct stream_update *u)
{
	int ret;

	assert(s->state == STREAM_IDLE && s->cfg.meets);
	s->agreed = (struct qp_stream){
		.consent = true, .ird = params->ird, .ord = params->ord, .mss = MPA_ULPDU_MAX};
	s->deadline = stream_after(now, s->cfg.connect_ns);
	ret = stream_start_qp(s);
	if (!ret)
		stream_set_state(s, STREAM_HELLO, "its own peer");
	stream_report(s, u);
	return ret;
}

void stream_startup_failed(struct stream *s, enum stream_event event, int err, const char *why)
{
	enum stream_state from = s->state;

	LOG_INFO("stream %p: start-up failed: %s: %s", (void *)s, why, strerror(err));
	stream_set_cause(s, err);
	stream_end_qp(s);
	stream_set_state(s, STREAM_CLOSED, why);
	switch (from) {
	case STREAM_DIALING:
	case STREAM_REQ_SENT:
		stream_end(s, event, -err);
		break;
	case STREAM_REQ_WAIT:
		stream_end(s, STREAM_EV_DEAD, -err);
		break;
	case STREAM_REQ_RCVD: /* stream_accept() reports the error */
		s->gone = true;
		break;
	case STREAM_REP_SENT:
		stream_end(s, STREAM_EV_CONNECT_ERROR, -err);
		break;
	case STREAM_HELLO:
		if (s->cfg.role == STREAM_RESPONDER)
			event = STREAM_EV_CONNECT_ERROR;
		stream_end(s, event, -err);
		break;
	case STREAM_IDLE:
	case STREAM_LIVE:
	case STREAM_DRAINING:
	case STREAM_CLOSING:
	case STREAM_LINGERING:
	case STREAM_CLOSED:
		assert(!"not in start-up");
		break;
	}
}
