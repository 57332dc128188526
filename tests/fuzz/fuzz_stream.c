/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start-up against a stranger, in either role: his bytes, cut as he likes, with hang-ups and
 * time between, and a user who does anything he may.
 *
 *   input = configuration, then steps: an opcode byte, and for bytes their number
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "softrnic/stream/stream.h"
#include "softrnic/proto/mpa.h"

#define MSS 1448

struct fuzz {
	struct stream *s;
	unsigned finals, redials;
	bool established;
	uint64_t now;
	uint8_t out[MPA_START_MAX]; /* what we sent since the last dial */
	size_t out_len;
};

static void on_event(void *owner, enum stream_event event, int status)
{
	struct fuzz *f = owner;

	switch (event) {
	case STREAM_EV_CONNECT_REQUEST:
		break;
	case STREAM_EV_ESTABLISHED:
		EXPECT(!f->established);
		f->established = true;
		break;
	case STREAM_EV_REDIAL:
		EXPECT(++f->redials <= 2);
		f->out_len = 0;
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

static void check(const struct fuzz *f)
{
	enum stream_state state = stream_state(f->s);
	const struct qp_stream *agreed = stream_agreed(f->s);

	EXPECT(stream_wants_close(f->s) == (state == STREAM_CLOSED));
	if (state != STREAM_LIVE)
		return;
	EXPECT(f->established);
	EXPECT(agreed->ird <= 128 && agreed->ord <= 128);
	EXPECT(!agreed->consent || (agreed->rtr_in == QP_RTR_NONE && !agreed->hold_tx));
}

static void feed(struct fuzz *f, const uint8_t *bytes, size_t len)
{
	struct iovec iov[QP_RX_IOV];

	while (len > 0 && stream_rx_want(f->s, iov) > 0) {
		size_t n = iov[0].iov_len < len ? iov[0].iov_len : len;

		EXPECT(n > 0);
		memcpy(iov[0].iov_base, bytes, n);
		bytes += n;
		len -= n;
		stream_rx_got(f->s, n, f->now);
		check(f);
	}
}

/* What we say is always well formed, whatever we were told. */
static void send_all(struct fuzz *f)
{
	struct iovec iov[QP_TX_IOV];
	struct mpa_start start;
	const uint8_t *pdata;
	int n;

	while ((n = stream_tx_gather(f->s, iov)) > 0) {
		EXPECT(n == 1 && f->out_len + iov[0].iov_len <= sizeof(f->out));
		memcpy(f->out + f->out_len, iov[0].iov_base, iov[0].iov_len);
		f->out_len += iov[0].iov_len;
		stream_tx_sent(f->s, iov[0].iov_len, f->now);
	}
	if (f->out_len)
		EXPECT(mpa_start_decode(f->out, f->out_len, &start, &pdata) > 0);
	if (stream_wants_fin(f->s))
		stream_fin_done(f->s, f->now);
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
		.event = on_event,
		.owner = f,
	};
}

static void step(struct fuzz *f, uint8_t op, struct rcursor *c)
{
	struct stream_params params = {.ird = op, .ord = op / 2, .pdata_len = op};
	size_t len;

	switch (op % 12) {
	default: /* mostly bytes */
		len = rcursor_u8(c);
		len = len < rcursor_left(c) ? len : rcursor_left(c);
		feed(f, rcursor_bytes(c, len), len);
		break;
	case 4:
		stream_rx_eof(f->s, f->now);
		break;
	case 5:
		stream_rx_error(f->s, op & 64 ? ECONNRESET : ETIMEDOUT, f->now);
		break;
	case 6:
		stream_on_dialed(f->s, MSS, f->now);
		break;
	case 7:
		stream_accept(f->s, &params, MSS, f->now);
		break;
	case 8:
		stream_reject(f->s, params.pdata, op, f->now);
		break;
	case 9:
		stream_disconnect(f->s, f->now);
		break;
	case 10:
		f->now += NSEC_PER_SEC;
		stream_on_time(f->s, f->now);
		break;
	case 11:
		send_all(f);
		break;
	}
	check(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rcursor c = rcursor_init(data, len);
	uint8_t bits = rcursor_u8(&c);
	struct fuzz f = {.now = 1};
	struct stream_config cfg = config_of(bits, &f);
	struct stream_params params = {.ird = bits, .ord = bits, .pdata_len = bits};
	enum stream_state state;

	EXPECT(stream_new(&cfg, &f.s) == 0);
	if (cfg.role == STREAM_INITIATOR) {
		EXPECT(stream_connect(f.s, &params, f.now) == 0);
		stream_on_dialed(f.s, MSS, f.now);
	} else {
		stream_on_incoming(f.s, f.now);
	}
	while (rcursor_left(&c) > 0)
		step(&f, rcursor_u8(&c), &c);
	/* No step leaves it waiting for the peer for ever. */
	for (int i = 0; i < 3; i++) {
		f.now += 3600 * NSEC_PER_SEC;
		stream_on_time(f.s, f.now);
		check(&f);
	}
	state = stream_state(f.s);
	EXPECT(state == STREAM_REQ_RCVD || state == STREAM_LIVE || state == STREAM_CLOSED);
	stream_delete(f.s);
	return 0;
}
