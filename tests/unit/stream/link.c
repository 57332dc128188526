/* SPDX-License-Identifier: BSD-3-Clause */
#include "link.h"

#include <stdlib.h>
#include <string.h>

const struct stream_params link_params = {.ird = 16, .ord = 16};

struct stream_config link_config(enum stream_role role)
{
	return (struct stream_config){
		.role = role,
		.crc = true,
		.offer_consent = true,
		.user_flushes = true,
		.revision = 2,
		.connect_ns = 10 * NSEC_PER_SEC,
		.request_ns = 5 * NSEC_PER_SEC,
		.drain_ns = 3 * NSEC_PER_SEC,
	};
}

static bool is_final(enum stream_event event)
{
	return event != STREAM_EV_CONNECT_REQUEST && event != STREAM_EV_ESTABLISHED &&
	       event != STREAM_EV_REDIAL;
}

static void on_event(void *owner, enum stream_event event, int status)
{
	struct side *side = owner;

	side->seen[event]++;
	side->status = status;
	side->finals += is_final(event);
}

static void side_init(struct side *side, const struct stream_config *cfg, struct side *peer,
		      uint64_t *now)
{
	*side = (struct side){.peer = peer, .now = now, .chunk = PIPE_SIZE};
	if (cfg) {
		struct stream_config own = *cfg;

		own.event = on_event;
		own.owner = side;
		assert_int_equal(stream_new(&own, &side->s), 0);
	}
}

void link_init(struct link *l, const struct stream_config *a, const struct stream_config *b)
{
	l->now = 1000;
	side_init(&l->a, a, &l->b, &l->now);
	side_init(&l->b, b, &l->a, &l->now);
}

static void side_fini(struct side *side)
{
	if (side->s)
		stream_set_qp(side->s, NULL);
	rig_delete(side->rig);
	stream_delete(side->s);
	free(side->in.bytes);
}

void link_fini(struct link *l)
{
	assert_true(l->a.finals <= 1 && l->b.finals <= 1);
	side_fini(&l->a);
	side_fini(&l->b);
}

static void pipe_put(struct pipe *p, const void *bytes, size_t len)
{
	if (!p->bytes)
		p->bytes = malloc(PIPE_SIZE);
	assert_non_null(p->bytes);
	assert_true(p->tail + len <= PIPE_SIZE);
	memcpy(p->bytes + p->tail, bytes, len);
	p->tail += len;
}

void side_feed(struct side *to, const void *bytes, size_t len)
{
	pipe_put(&to->in, bytes, len);
}

void side_feed_fin(struct side *to)
{
	to->in.fin = true;
}

size_t side_take(struct side *from, void *buf, size_t max)
{
	struct pipe *p = &from->peer->in;
	size_t n = p->tail - p->head;

	n = n < max ? n : max;
	if (n)
		memcpy(buf, p->bytes + p->head, n);
	p->head += n;
	return n;
}

struct mpa_start side_next_frame(struct side *from)
{
	uint8_t frame[MPA_START_MAX];
	size_t len = side_take(from, frame, sizeof(frame));
	struct mpa_start start;
	const uint8_t *pdata;

	assert_int_equal(mpa_start_decode(frame, len, &start, &pdata), (int)len);
	return start;
}

void side_feed_frame(struct side *to, const struct mpa_start *start)
{
	uint8_t frame[MPA_START_MAX], zeros[MPA_PD_MAX] = {0};
	int len = mpa_start_encode(frame, sizeof(frame), start, zeros);

	assert_true(len > 0);
	side_feed(to, frame, (size_t)len);
}

static bool side_tx(struct side *side)
{
	struct iovec iov[QP_TX_IOV];
	int n;
	size_t sent = 0;

	if (side->closed || side->muted)
		return false;
	if (side->rig)
		rig_lend(side->rig, false, stream_tx_needs_buf(side->s));
	n = stream_tx_gather(side->s, iov);
	for (int i = 0; i < n && sent < side->chunk; i++) {
		size_t part = iov[i].iov_len;

		if (part > side->chunk - sent)
			part = side->chunk - sent;
		pipe_put(&side->peer->in, iov[i].iov_base, part);
		sent += part;
	}
	if (n > 0)
		stream_tx_sent(side->s, sent, *side->now);
	return n > 0;
}

static bool side_rx(struct side *side)
{
	struct pipe *p = &side->in;
	size_t left = p->tail - p->head, got = 0;
	struct iovec iov[QP_RX_IOV];
	int n;

	if (side->closed || (!left && (!p->fin || p->fin_read)))
		return false;
	if (side->rig)
		rig_lend(side->rig, stream_rx_needs_buf(side->s), false);
	n = stream_rx_want(side->s, iov);
	if (n == 0)
		return false;
	left = left < side->chunk ? left : side->chunk;
	for (int i = 0; i < n && got < left; i++) {
		size_t part = iov[i].iov_len < left - got ? iov[i].iov_len : left - got;

		memcpy(iov[i].iov_base, p->bytes + p->head, part);
		p->head += part;
		got += part;
	}
	stream_rx_got(side->s, got, *side->now);
	if (got == 0) {
		p->fin_read = true;
		stream_rx_eof(side->s, *side->now);
	}
	return true;
}

static bool side_finish(struct side *side)
{
	bool fin = !side->closed && stream_wants_fin(side->s);

	if (fin) {
		side->peer->in.fin = true;
		stream_fin_done(side->s, *side->now);
	}
	if (side->closed || !stream_wants_close(side->s))
		return fin;
	side->peer->in.fin = true;
	side->closed = true;
	return true;
}

static bool side_run(struct side *side)
{
	bool moved;

	if (!side->s)
		return false;
	moved = side_rx(side);
	moved |= side_tx(side);
	moved |= side_finish(side);
	if (side->rig)
		rig_reclaim(side->rig);
	return moved;
}

void link_run(struct link *l)
{
	bool moved;

	do {
		moved = side_run(&l->a);
		moved |= side_run(&l->b);
	} while (moved);
}

void link_dial(struct link *l, const struct stream_params *params)
{
	if (l->a.s) {
		assert_int_equal(stream_connect(l->a.s, params, l->now), 0);
		stream_on_dialed(l->a.s, LINK_MSS, l->now);
	}
	if (l->b.s)
		stream_on_incoming(l->b.s, l->now);
	link_run(l);
}

void link_establish(struct link *l)
{
	link_dial(l, &link_params);
	assert_state(&l->b, REQ_RCVD);
	assert_int_equal(stream_accept(l->b.s, &link_params, LINK_MSS, l->now), 0);
	link_run(l);
	assert_state(&l->a, LIVE);
	assert_state(&l->b, LIVE);
	assert_int_equal(l->a.seen[STREAM_EV_ESTABLISHED], 1);
	assert_int_equal(l->b.seen[STREAM_EV_ESTABLISHED], 1);
}

void link_pass(struct link *l, uint64_t ns)
{
	l->now += ns;
	if (l->a.s)
		stream_on_time(l->a.s, l->now);
	if (l->b.s)
		stream_on_time(l->b.s, l->now);
	link_run(l);
}
