/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every event in every state, every pair of events, and long random walks. Each transition is
 * read from the log and looked up in the table below, which says what stream.h promises.
 */
#include "link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define BIT(name) (1u << CM_##name)

static const unsigned allowed[] = {
	[CM_IDLE] = BIT(DIALING) | BIT(REQ_WAIT) | BIT(CLOSED),
	[CM_DIALING] = BIT(REQ_SENT) | BIT(CLOSED),
	[CM_REQ_SENT] = BIT(LIVE) | BIT(DIALING) | BIT(CLOSING) | BIT(CLOSED),
	[CM_REQ_WAIT] = BIT(REQ_RCVD) | BIT(CLOSING) | BIT(CLOSED),
	[CM_REQ_RCVD] = BIT(REP_SENT) | BIT(CLOSING) | BIT(CLOSED),
	[CM_REP_SENT] = BIT(LIVE) | BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[CM_LIVE] = BIT(DRAINING) | BIT(CLOSING) | BIT(CLOSED),
	[CM_DRAINING] = BIT(CLOSING) | BIT(CLOSED),
	[CM_CLOSING] = BIT(CLOSED),
	[CM_CLOSED] = 0,
};

static struct link l;
static struct side *me;
static bool aborted, connected;
static enum cm_state logged;

static enum cm_state state_named(const char *name)
{
	for (enum cm_state state = CM_IDLE; state <= CM_CLOSED; state++)
		if (!strcmp(name, cm_state_str(state)))
			return state;
	fail_msg("no such state: %s", name);
	return CM_CLOSED;
}

static void watch(enum log_level level, const char *file, int line, const char *func,
		  const char *text)
{
	char from[16], to[16];
	void *stream;

	if (sscanf(text, "stream %p: %15[A-Z_] -> %15[A-Z_]", &stream, from, to) != 3)
		return;
	if (!(allowed[state_named(from)] & 1u << state_named(to)))
		fail_msg("%s", text);
	if (stream != me->s)
		return;
	assert_int_equal(state_named(from), logged);
	logged = state_named(to);
}

/* --- events ---------------------------------------------------------------------------------- */

static void ev_connect(void)
{
	connected |= cm_stream_connect(me->s, &link_params, l.now) == 0;
}

static void ev_accept(void)
{
	cm_stream_accept(me->s, &link_params, LINK_MSS, l.now);
}

static void ev_reject(void)
{
	cm_stream_reject(me->s, "no", 2, l.now);
}

static void ev_disconnect(void)
{
	enum cm_state before = cm_stream_state(me->s);
	int ret = cm_stream_disconnect(me->s, l.now);

	assert_int_equal(ret, before < CM_REP_SENT ? -EINVAL : 0);
}

static void ev_abort(void)
{
	cm_stream_abort(me->s);
	aborted = true;
}

static void ev_dialed(void)
{
	cm_on_dialed(me->s, LINK_MSS, l.now);
}

static void ev_dial_failed(void)
{
	cm_on_dial_failed(me->s, ECONNREFUSED, l.now);
}

static void ev_incoming(void)
{
	cm_on_incoming(me->s, l.now);
}

/* As many bytes as the stream wants, of the kind that the test wants. */
static void receive(const void *bytes, size_t len)
{
	struct iovec iov[QP_RX_IOV];

	rig_lend(me->rig, cm_rx_needs_buf(me->s), false);
	while (len > 0 && cm_rx_want(me->s, iov) > 0) {
		size_t n = iov[0].iov_len < len ? iov[0].iov_len : len;

		assert_true(n > 0);
		memcpy(iov[0].iov_base, bytes, n);
		bytes = (const uint8_t *)bytes + n;
		len -= n;
		cm_rx_got(me->s, n, l.now);
	}
}

static void ev_rx_request(void)
{
	receive("MPA ID Req Frame\x50\2\0\4\0\1\0\1", 24);
}

static void ev_rx_p2p_request(void)
{
	receive("MPA ID Req Frame\x50\2\0\4\x80\1\xc0\1", 24);
}

static void ev_rx_reply(void)
{
	receive("MPA ID Rep Frame\x50\2\0\4\x40\1\x80\1", 24);
}

static void ev_rx_reject(void)
{
	receive("MPA ID Rep Frame\x70\2\0\4\0\1\0\1", 24);
}

static void ev_rx_bad_reply(void)
{
	receive("MPA ID Rep Frame\x50\2\0\4\0\1\x3f\xfe", 24);
}

static void ev_rx_byte(void)
{
	receive("M", 1);
}

static void ev_rx_garbage(void)
{
	receive("A stream of some other protocol, too long for a header.", 55);
}

static void ev_rx_nothing(void)
{
	struct iovec iov[QP_RX_IOV];

	rig_lend(me->rig, cm_rx_needs_buf(me->s), false);
	if (cm_rx_want(me->s, iov) > 0)
		cm_rx_got(me->s, 0, l.now);
}

static void ev_rx_fault(void)
{
	struct iovec iov[QP_RX_IOV];

	rig_lend(me->rig, cm_rx_needs_buf(me->s), false);
	if (cm_rx_want(me->s, iov) > 0)
		cm_rx_fault(me->s, l.now);
}

static void ev_rx_eof(void)
{
	cm_rx_eof(me->s, l.now);
}

static void ev_rx_reset(void)
{
	cm_rx_error(me->s, ECONNRESET, l.now);
}

static void ev_rx_timeout(void)
{
	cm_rx_error(me->s, ETIMEDOUT, l.now);
}

static size_t gather(void)
{
	struct iovec iov[QP_TX_IOV];
	size_t total = 0;
	int n;

	rig_lend(me->rig, false, cm_tx_needs_buf(me->s));
	n = cm_tx_gather(me->s, iov);
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

static void ev_tx_all(void)
{
	for (size_t n = gather(); n > 0; n = gather())
		cm_tx_sent(me->s, n, l.now);
}

static void ev_tx_byte(void)
{
	if (gather() > 0)
		cm_tx_sent(me->s, 1, l.now);
}

static void ev_tx_error(void)
{
	gather();
	cm_tx_error(me->s, EPIPE, l.now);
}

static void ev_tx_fault(void)
{
	if (gather() > 0)
		cm_tx_fault(me->s, l.now);
}

static void ev_post(void)
{
	rig_post_recv(me->rig, 1);
	rig_post_send(me->rig, 2);
	cm_stream_poke(me->s, l.now);
}

static void ev_qp_fails(void)
{
	qp_fail(rig_qp(me->rig), IBV_WC_WR_FLUSH_ERR);
	cm_stream_poke(me->s, l.now);
}

static void ev_detach(void)
{
	cm_stream_set_qp(me->s, NULL);
}

static void ev_fin(void)
{
	if (cm_wants_fin(me->s))
		cm_fin_done(me->s, l.now);
}

static void ev_early(void)
{
	cm_on_time(me->s, l.now);
}

static void ev_late(void)
{
	l.now += 3600 * NSEC_PER_SEC;
	cm_on_time(me->s, l.now);
}

static void (*const events[])(void) = {
	ev_connect,    ev_accept,      ev_reject,       ev_disconnect, ev_abort,
	ev_dialed,     ev_dial_failed, ev_incoming,     ev_rx_request, ev_rx_p2p_request,
	ev_rx_reply,   ev_rx_reject,   ev_rx_bad_reply, ev_rx_byte,    ev_rx_garbage,
	ev_rx_nothing, ev_rx_fault,    ev_rx_eof,       ev_rx_reset,   ev_rx_timeout,
	ev_tx_all,     ev_tx_byte,     ev_tx_error,     ev_tx_fault,   ev_post,
	ev_qp_fails,   ev_detach,      ev_fin,          ev_early,      ev_late,
};

/* --- states ---------------------------------------------------------------------------------- */

static void none(void)
{
}

static void dialing(void)
{
	ev_connect();
}

static void req_sent(void)
{
	ev_connect();
	ev_dialed();
	ev_tx_all();
}

static void req_half_sent(void)
{
	ev_connect();
	ev_dialed();
	ev_tx_byte();
}

static void redialing(void)
{
	req_sent();
	ev_rx_eof();
}

static void live_initiator(void)
{
	req_sent();
	ev_rx_reply();
}

static void rejected(void)
{
	req_sent();
	ev_rx_reject();
}

static void terminating(void)
{
	req_sent();
	ev_rx_bad_reply();
}

static void req_wait(void)
{
	ev_incoming();
}

static void req_half_read(void)
{
	ev_incoming();
	ev_rx_byte();
}

static void req_rcvd(void)
{
	ev_incoming();
	ev_rx_request();
}

static void rep_sent(void)
{
	req_rcvd();
	ev_accept();
}

static void rtr_awaited(void)
{
	ev_incoming();
	ev_rx_p2p_request();
	ev_accept();
	ev_tx_all();
}

static void live_responder(void)
{
	rep_sent();
	ev_tx_all();
}

static void held(void)
{
	live_responder();
	ev_post();
}

static void draining(void)
{
	live_initiator();
	ev_post();
	ev_disconnect();
}

static void draining_behind_fin(void)
{
	draining();
	ev_rx_eof();
}

static void closing(void)
{
	live_initiator();
	ev_disconnect();
	ev_tx_all();
}

static void closing_behind_own_fin(void)
{
	closing();
	ev_fin();
}

static void closing_failed(void)
{
	live_responder();
	ev_qp_fails();
}

static void rejecting(void)
{
	req_rcvd();
	ev_reject();
}

static void left_by_the_peer(void)
{
	req_rcvd();
	ev_rx_eof();
}

static const struct place {
	enum cm_role role;
	enum cm_state state;
	void (*reach)(void);
} places[] = {
	{CM_INITIATOR, CM_IDLE, none},
	{CM_INITIATOR, CM_DIALING, dialing},
	{CM_INITIATOR, CM_REQ_SENT, req_sent},
	{CM_INITIATOR, CM_REQ_SENT, req_half_sent},
	{CM_INITIATOR, CM_DIALING, redialing},
	{CM_INITIATOR, CM_LIVE, live_initiator},
	{CM_INITIATOR, CM_DRAINING, draining},
	{CM_INITIATOR, CM_DRAINING, draining_behind_fin},
	{CM_INITIATOR, CM_CLOSING, closing},
	{CM_INITIATOR, CM_CLOSING, closing_behind_own_fin},
	{CM_INITIATOR, CM_CLOSING, terminating},
	{CM_INITIATOR, CM_CLOSED, rejected},
	{CM_RESPONDER, CM_IDLE, none},
	{CM_RESPONDER, CM_REQ_WAIT, req_wait},
	{CM_RESPONDER, CM_REQ_WAIT, req_half_read},
	{CM_RESPONDER, CM_REQ_RCVD, req_rcvd},
	{CM_RESPONDER, CM_REP_SENT, rep_sent},
	{CM_RESPONDER, CM_REP_SENT, rtr_awaited},
	{CM_RESPONDER, CM_LIVE, live_responder},
	{CM_RESPONDER, CM_LIVE, held},
	{CM_RESPONDER, CM_CLOSING, closing_failed},
	{CM_RESPONDER, CM_CLOSING, rejecting},
	{CM_RESPONDER, CM_CLOSED, left_by_the_peer},
};

/* --- walks ----------------------------------------------------------------------------------- */

static void begin(const struct place *place)
{
	struct cm_config cfg = link_config(place->role);

	aborted = connected = false;
	logged = CM_IDLE;
	if (place->role == CM_INITIATOR)
		link_init(&l, &cfg, NULL);
	else
		link_init(&l, NULL, &cfg);
	me = place->role == CM_INITIATOR ? &l.a : &l.b;
	side_add_qp(me);
	place->reach();
	assert_int_equal(cm_stream_state(me->s), place->state);
}

static void check(void)
{
	struct iovec iov[QP_TX_IOV];
	enum cm_state state = cm_stream_state(me->s);

	assert_int_equal(state, logged);
	assert_true(me->finals <= 1);
	assert_true(me->seen[CM_EV_ESTABLISHED] <= 1);
	assert_true(me->seen[CM_EV_CONNECT_REQUEST] <= 1);
	assert_true(me->seen[CM_EV_REDIAL] <= 2);
	assert_int_equal(cm_wants_close(me->s), state == CM_CLOSED);
	if (state != CM_CLOSED)
		return;
	assert_int_equal(cm_deadline(me->s), CLOCK_NEVER);
	assert_false(cm_wants_fin(me->s));
	assert_int_equal(cm_tx_gather(me->s, iov), 0);
	assert_int_equal(cm_rx_want(me->s, iov), 0);
	if (aborted)
		return;
	if (connected) /* whoever asked for a connection learns its end */
		assert_int_equal(me->finals, 1);
	if (me->seen[CM_EV_ESTABLISHED])
		assert_int_equal(me->seen[CM_EV_DISCONNECTED], 1);
	else if (!me->seen[CM_EV_CONNECT_REQUEST])
		assert_int_equal(me->seen[CM_EV_DISCONNECTED], 0);
}

static void step(void (*event)(void))
{
	event();
	check();
	rig_reclaim(me->rig);
}

/* No state but these may last for ever: nothing in them waits for the peer. */
static void end(void)
{
	enum cm_state state;

	ev_late();
	check();
	ev_late();
	check();
	state = cm_stream_state(me->s);
	assert_true(state == CM_IDLE || state == CM_REQ_RCVD || state == CM_LIVE ||
		    state == CM_CLOSED);
	link_fini(&l);
}

static void every_event_in_every_state(void **state)
{
	for (size_t p = 0; p < ARRAY_LEN(places); p++)
		for (size_t e = 0; e < ARRAY_LEN(events); e++) {
			begin(&places[p]);
			step(events[e]);
			end();
		}
}

static void every_pair_of_events_in_every_state(void **state)
{
	const size_t n = ARRAY_LEN(events);

	for (size_t p = 0; p < ARRAY_LEN(places); p++)
		for (size_t e = 0; e < n * n; e++) {
			begin(&places[p]);
			step(events[e / n]);
			step(events[e % n]);
			end();
		}
}

static void long_walks(void **state)
{
	uint64_t seed = 0x5eed;

	for (int walk = 0; walk < 3000; walk++) {
		begin(&places[test_random(&seed) % ARRAY_LEN(places)]);
		for (int i = 0; i < 20; i++)
			step(events[test_random(&seed) % ARRAY_LEN(events)]);
		end();
	}
}

static int listen_to_the_log(void **state)
{
	log_set(watch, LOG_LVL_INFO);
	return 0;
}

static int stop_listening(void **state)
{
	log_set(NULL, LOG_LVL_OFF);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_event_in_every_state),
		cmocka_unit_test(every_pair_of_events_in_every_state),
		cmocka_unit_test(long_walks),
	};

	return cmocka_run_group_tests(tests, listen_to_the_log, stop_listening);
}
