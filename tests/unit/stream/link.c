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

static const struct stream_host side_host;

static bool is_final(enum stream_event event)
{
	return event != STREAM_EV_CONNECT_REQUEST && event != STREAM_EV_ESTABLISHED;
}

static void on_event(void *owner, enum stream_event event, int status)
{
	struct side *side = owner;

	side->seen[event]++;
	side->status = status;
	side->finals += is_final(event);
}

void side_events(struct side *side)
{
	enum stream_event event;
	int status;

	while (stream_take_event(side->s, &event, &status))
		on_event(side, event, status);
	stream_look(side->s, &side->u);
}

static void side_init(struct side *side, const struct stream_config *cfg, struct side *peer,
		      uint64_t *now)
{
	*side = (struct side){.peer = peer, .now = now, .chunk = PIPE_SIZE};
	if (cfg) {
		struct stream_config own = *cfg;

		own.host = &side_host;
		own.owner = side;
		assert_int_equal(stream_new(&own, &side->s), 0);
		stream_look(side->s, &side->u);
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
		stream_detach_qp(side->s, &side->u);
	rig_delete(side->rig);
	stream_delete(side->s);
	free(side->in.bytes);
}

void link_fini(struct link *l)
{
	struct side *sides[] = {&l->a, &l->b};

	for (int i = 0; i < 2; i++) {
		if (sides[i]->s)
			side_events(sides[i]);
		assert_true(sides[i]->finals <= 1);
	}
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

/* --- what the owner of a stream does -------------------------------------------------------- */

static void *side_get_buf(void *owner, enum stream_buf kind)
{
	return malloc(kind == STREAM_BUF_RX ? QP_RXBUF : QP_TXBUF);
}

static void side_put_buf(void *owner, enum stream_buf kind, void *buf)
{
	free(buf);
}

static uint64_t side_unacknowledged_ns(void *owner)
{
	return ((struct side *)owner)->unacknowledged_ns;
}

static bool side_has_ended(void *owner)
{
	return ((struct side *)owner)->in.fin;
}

static uint64_t side_now(void *owner)
{
	return *((struct side *)owner)->now;
}

static bool side_may_touch(void *owner)
{
	return true;
}

static bool side_receive(void *owner, struct stream_update *u)
{
	struct side *side = owner;
	struct pipe *p = &side->in;
	size_t left = p->tail - p->head, got = 0;
	struct stream_rx rx;

	if (side->closed || (!left && (!p->fin || p->fin_read)))
		return false;
	if (!stream_rx_begin(side->s, &rx, u))
		return false;
	left = left < side->chunk ? left : side->chunk;
	for (int i = 0; i < rx.n && got < left; i++) {
		size_t part = rx.iov[i].iov_len < left - got ? rx.iov[i].iov_len : left - got;

		memcpy(rx.iov[i].iov_base, p->bytes + p->head, part);
		p->head += part;
		got += part;
	}
	p->fin_read = got == 0;
	side->moved = true;
	stream_rx_end(side->s, (ssize_t)got, *side->now, u);
	return true;
}

static bool side_send(void *owner, struct stream_update *u)
{
	struct side *side = owner;
	struct iovec iov[QP_TX_IOV];
	size_t sent = 0;
	int n;

	if (side->closed || side->muted)
		return false;
	n = stream_tx_begin(side->s, iov, u);
	for (int i = 0; i < n && sent < side->chunk; i++) {
		size_t part = iov[i].iov_len;

		if (part > side->chunk - sent)
			part = side->chunk - sent;
		pipe_put(&side->peer->in, iov[i].iov_base, part);
		sent += part;
	}
	if (n > 0)
		stream_tx_end(side->s, (ssize_t)sent, u);
	side->moved |= n > 0;
	return n > 0;
}

static bool side_start_job(void *owner, struct stream_update *u)
{
	return false;
}

static void side_stop_job(void *owner)
{
}

static void side_fin(void *owner)
{
	struct side *side = owner;

	side->peer->in.fin = side->moved = true;
}

static void side_close(void *owner)
{
	struct side *side = owner;

	side->peer->in.fin = side->closed = side->moved = true;
}

static void side_redial(void *owner)
{
	((struct side *)owner)->redials++;
}

static void side_set_deadline(void *owner, uint64_t at)
{
	((struct side *)owner)->deadline = at;
}

static bool side_origin(void *owner, const uint8_t instance[EXT_ID_LEN], struct ext_origin *o)
{
	struct side *side = owner;

	o->serial = 7;
	memcpy(o->id, instance, EXT_ID_LEN);
	o->asks = side->names > 0;
	for (; o->n < side->names; o->n++)
		o->ranges[o->n] = (struct ext_range_of_serials){2 * o->n + 1, 2 * o->n + 1};
	return true;
}

static void side_fenced(void *owner, const struct ext_origin *o)
{
	struct side *side = owner;

	assert_int_equal(o->n, side->names);
	side->names = 0;
	side->fenced++;
}

static enum stream_fence side_identify(void *owner, const struct ext_origin *o)
{
	struct side *side = owner;

	side->came = *o;
	side->questions += o->asks;
	return o->asks || side->verdict == STREAM_FENCE_CUT ? side->verdict : STREAM_FENCE_DONE;
}

static const struct stream_host side_host = {
	.get_buf = side_get_buf,
	.put_buf = side_put_buf,
	.unacknowledged_ns = side_unacknowledged_ns,
	.has_ended = side_has_ended,
	.now = side_now,
	.may_touch = side_may_touch,
	.event = on_event,
	.receive = side_receive,
	.send = side_send,
	.start_job = side_start_job,
	.stop_job = side_stop_job,
	.fin = side_fin,
	.close = side_close,
	.redial = side_redial,
	.set_deadline = side_set_deadline,
	.origin = side_origin,
	.fenced = side_fenced,
	.identify = side_identify,
};

void side_perform(struct side *side)
{
	stream_perform(side->s, &side->u);
}

/* --- both ends ------------------------------------------------------------------------------ */

static bool side_run(struct side *side)
{
	if (!side->s)
		return false;
	side->moved = false;
	stream_look(side->s, &side->u);
	side_perform(side);
	return side->moved;
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
		assert_int_equal(stream_connect(l->a.s, params, l->now, &l->a.u), 0);
		stream_on_dialed(l->a.s, LINK_MSS, l->now, &l->a.u);
	}
	if (l->b.s)
		stream_on_incoming(l->b.s, l->now, &l->b.u);
	link_run(l);
}

void link_establish(struct link *l)
{
	link_dial(l, &link_params);
	assert_state(&l->b, REQ_RCVD);
	assert_int_equal(stream_accept(l->b.s, &link_params, LINK_MSS, l->now, &l->b.u), 0);
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
		stream_on_time(l->a.s, l->now, &l->a.u);
	if (l->b.s)
		stream_on_time(l->b.s, l->now, &l->b.u);
	link_run(l);
}
