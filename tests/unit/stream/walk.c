/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c -- every event that a stream can get, and every state in which it can get one. */
#include "walk.h"

#include <errno.h>
#include <string.h>

#include "lib/qp_pair.h"
#include "softrnic/proto/ext_hello.h"

struct walk walk;

/* --- events ---------------------------------------------------------------------------------- */

static void ev_connect(void)
{
	walk.connected |= stream_connect(walk.me->s, &link_params, walk.link.now, &walk.me->u) == 0;
}

static void ev_accept(void)
{
	stream_accept(walk.me->s, &link_params, LINK_MSS, walk.link.now, &walk.me->u);
}

static void ev_reject(void)
{
	stream_reject(walk.me->s, "no", 2, walk.link.now, &walk.me->u);
}

static void ev_disconnect(void)
{
	enum stream_state before = stream_state(walk.me->s);
	int ret = stream_disconnect(walk.me->s, walk.link.now, &walk.me->u);

	bool early =
		before < STREAM_REP_SENT || (before == STREAM_HELLO && walk.me == &walk.link.a);

	assert_int_equal(ret, early ? -EINVAL : 0);
}

static void ev_cancel(void)
{
	enum stream_state before = stream_state(walk.me->s);
	/* the previous step took all earlier events */
	int events = walk.me->seen[STREAM_EV_UNREACHABLE];
	int ret = stream_cancel(walk.me->s, &walk.me->u);
	bool connecting = before == STREAM_DIALING || before == STREAM_REQ_SENT ||
			  before == STREAM_REP_SENT || before == STREAM_HELLO;

	assert_int_equal(ret, connecting || before >= STREAM_LIVE ? 0 : -EINVAL);
	assert_int_equal(stream_state(walk.me->s), connecting ? STREAM_CLOSED : before);
	side_events(walk.me);
	assert_int_equal(walk.me->seen[STREAM_EV_UNREACHABLE], events + connecting);
}

static void ev_abort(void)
{
	stream_abort(walk.me->s, &walk.me->u);
	walk.aborted = true;
}

static void ev_dialed(void)
{
	stream_on_dialed(walk.me->s, LINK_MSS, walk.link.now, &walk.me->u);
}

static void ev_dial_failed(void)
{
	stream_on_dial_failed(walk.me->s, ECONNREFUSED, walk.link.now, &walk.me->u);
}

static void ev_incoming(void)
{
	stream_on_incoming(walk.me->s, walk.link.now, &walk.me->u);
}

/* Give the stream as many of these bytes as it takes. */
static void receive(const void *bytes, size_t len)
{
	struct stream_rx rx;

	while (len > 0 && stream_rx_begin(walk.me->s, &rx, &walk.me->u)) {
		size_t n = rx.iov[0].iov_len < len ? rx.iov[0].iov_len : len;

		assert_true(n > 0);
		memcpy(rx.iov[0].iov_base, bytes, n);
		bytes = (const uint8_t *)bytes + n;
		len -= n;
		stream_rx_end(walk.me->s, (ssize_t)n, walk.link.now, &walk.me->u);
	}
}

static void ev_rx_request(void)
{
	receive("MPA ID Req Frame\x50\2\0\4\0\1\0\1", 24);
}

static void ev_rx_consenting_request(void)
{
	receive("MPA ID Req Frame\x50\2\0\4\x40\1\0\1", 24);
}

static void ev_rx_p2p_request(void)
{
	receive("MPA ID Req Frame\x50\2\0\4\x80\1\xc0\1", 24);
}

static void ev_rx_reply(void)
{
	receive("MPA ID Rep Frame\x50\2\0\4\x40\1\xc0\1", 24);
}

static void ev_rx_reject(void)
{
	receive("MPA ID Rep Frame\x70\2\0\4\0\1\0\1", 24);
}

static void ev_rx_bad_reply(void)
{
	receive("MPA ID Rep Frame\x50\2\0\4\0\1\x3f\xfe", 24);
}

static void receive_fpdu(const struct ddp_hdr *hdr, const void *payload, size_t len)
{
	uint8_t fpdu[128];

	receive(fpdu, fpdu_make(fpdu, hdr, payload, len, true));
}

static void receive_hello(uint16_t major)
{
	struct ext_hello hello = {.major = major, .max_ulpdu = MPA_ULPDU_MAX};
	struct ddp_hdr hdr = hdr_untagged(RDMAP_EXT_REQ, DDP_QN_CONTROL, 1, 0, true);
	uint8_t bytes[EXT_HELLO_LEN];

	ext_hello_encode(bytes, sizeof(bytes), &hello);
	receive_fpdu(&hdr, bytes, sizeof(bytes));
}

static void ev_rx_hello(void)
{
	receive_hello(EXT_HELLO_MAJOR);
}

/* A HELLO with a version that does not exist. */
static void ev_rx_bad_hello(void)
{
	receive_hello(99);
}

/* An empty Write: it has no effect in full operation, and is an error before a HELLO. */
static void ev_rx_write(void)
{
	struct ddp_hdr hdr = hdr_tagged(RDMAP_WRITE, 1, 0, true);

	receive_fpdu(&hdr, NULL, 0);
}

static void ev_rx_byte(void)
{
	receive("M", 1);
}

static void ev_rx_garbage(void)
{
	receive("A stream of some other protocol, too long for a header.", 55);
}

static void receive_nothing(ssize_t why)
{
	struct stream_rx rx;

	if (stream_rx_begin(walk.me->s, &rx, &walk.me->u))
		stream_rx_end(walk.me->s, why, walk.link.now, &walk.me->u);
}

static void ev_rx_nothing(void)
{
	receive_nothing(-EAGAIN);
}

static void ev_rx_fault(void)
{
	receive_nothing(-EFAULT);
}

static void ev_rx_eof(void)
{
	stream_rx_end(walk.me->s, 0, walk.link.now, &walk.me->u);
}

static void ev_rx_reset(void)
{
	stream_rx_end(walk.me->s, -ECONNRESET, walk.link.now, &walk.me->u);
}

static void ev_rx_timeout(void)
{
	stream_rx_end(walk.me->s, -ETIMEDOUT, walk.link.now, &walk.me->u);
}

static size_t gather(void)
{
	struct iovec iov[QP_TX_IOV];
	size_t total = 0;
	int n;

	n = stream_tx_begin(walk.me->s, iov, &walk.me->u);
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	return total;
}

/* If the stream needs the present time, its update requests it by a deadline of 0. */
static void give_time(void)
{
	if (walk.me->u.deadline == 0)
		stream_on_time(walk.me->s, walk.link.now, &walk.me->u);
}

static void tx_end(ssize_t sent)
{
	stream_tx_end(walk.me->s, sent, &walk.me->u);
	give_time();
}

static void ev_tx_all(void)
{
	for (size_t n = gather(); n > 0; n = gather())
		tx_end((ssize_t)n);
}

static void ev_tx_byte(void)
{
	if (gather() > 0)
		tx_end(1);
}

static void ev_tx_error(void)
{
	gather();
	tx_end(-EPIPE);
}

static void ev_tx_fault(void)
{
	if (gather() > 0)
		tx_end(-EFAULT);
}

static void ev_post(void)
{
	if (!stream_qp(walk.me->s))
		return;
	side_post_recv(walk.me, 1);
	side_post_send(walk.me, 2);
}

static void ev_qp_fails(void)
{
	if (!stream_qp(walk.me->s))
		return;
	stream_fail_qp(walk.me->s, &walk.me->u);
	give_time();
}

static void ev_detach(void)
{
	stream_detach_qp(walk.me->s, &walk.me->u);
}

static void ev_fin(void)
{
	if (walk.me->u.todo & STREAM_DO_FIN)
		stream_fin_sent(walk.me->s, &walk.me->u);
}

/* Carry out all pending work, without bytes of the peer. */
static void ev_perform(void)
{
	side_perform(walk.me);
}

static void ev_early(void)
{
	stream_on_time(walk.me->s, walk.link.now, &walk.me->u);
}

void ev_late(void)
{
	walk.link.now += 3600 * NSEC_PER_SEC;
	stream_on_time(walk.me->s, walk.link.now, &walk.me->u);
}

/* The peer is silent for longer than every limit, while this end checks in time. */
void ev_silence(void)
{
	for (int i = 0; i < 8 && stream_deadline(walk.me->s) != CLOCK_NEVER; i++) {
		if (walk.link.now < stream_deadline(walk.me->s))
			walk.link.now = stream_deadline(walk.me->s);
		stream_on_time(walk.me->s, walk.link.now, &walk.me->u);
	}
}

static void ev_unacknowledged(void)
{
	walk.me->unacknowledged_ns = CLOCK_NEVER;
	stream_on_time(walk.me->s, walk.link.now, &walk.me->u);
	walk.me->unacknowledged_ns = 0;
}

void (*const walk_events[])(void) = {
	ev_connect,
	ev_accept,
	ev_reject,
	ev_disconnect,
	ev_abort,
	ev_cancel,
	ev_dialed,
	ev_dial_failed,
	ev_incoming,
	ev_rx_request,
	ev_rx_p2p_request,
	ev_rx_reply,
	ev_rx_reject,
	ev_rx_bad_reply,
	ev_rx_byte,
	ev_rx_garbage,
	ev_rx_nothing,
	ev_rx_fault,
	ev_rx_eof,
	ev_rx_reset,
	ev_rx_timeout,
	ev_tx_all,
	ev_tx_byte,
	ev_tx_error,
	ev_tx_fault,
	ev_post,
	ev_qp_fails,
	ev_detach,
	ev_fin,
	ev_early,
	ev_late,
	ev_silence,
	ev_unacknowledged,
	ev_perform,
	ev_rx_hello,
	ev_rx_bad_hello,
	ev_rx_write,
	ev_rx_consenting_request,
};
const size_t walk_n_events = ARRAY_LEN(walk_events);

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

static void hello_initiator(void)
{
	req_sent();
	ev_rx_reply();
}

static void live_initiator(void)
{
	hello_initiator();
	ev_rx_hello();
	ev_tx_all();
}

static void no_hello(void)
{
	hello_initiator();
	ev_rx_write();
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

static void hello_responder(void)
{
	ev_incoming();
	ev_rx_consenting_request();
	ev_accept();
	ev_tx_all();
}

static void hello_before_reply(void)
{
	ev_incoming();
	ev_rx_consenting_request();
	ev_accept();
	ev_rx_hello();
}

static void live_with_hello(void)
{
	hello_responder();
	ev_rx_hello();
}

static void draining_before_hello(void)
{
	hello_responder();
	ev_post();
	ev_disconnect();
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

static void lingering(void)
{
	draining();
	ev_late();
}

static void lingering_behind_own_fin(void)
{
	closing_behind_own_fin();
	ev_late();
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

const struct place walk_places[] = {
	{STREAM_INITIATOR, STREAM_IDLE, none},
	{STREAM_INITIATOR, STREAM_DIALING, dialing},
	{STREAM_INITIATOR, STREAM_REQ_SENT, req_sent},
	{STREAM_INITIATOR, STREAM_REQ_SENT, req_half_sent},
	{STREAM_INITIATOR, STREAM_DIALING, redialing},
	{STREAM_INITIATOR, STREAM_HELLO, hello_initiator},
	{STREAM_INITIATOR, STREAM_CLOSING, no_hello},
	{STREAM_INITIATOR, STREAM_LIVE, live_initiator},
	{STREAM_INITIATOR, STREAM_DRAINING, draining},
	{STREAM_INITIATOR, STREAM_DRAINING, draining_behind_fin},
	{STREAM_INITIATOR, STREAM_CLOSING, closing},
	{STREAM_INITIATOR, STREAM_CLOSING, closing_behind_own_fin},
	{STREAM_INITIATOR, STREAM_CLOSING, terminating},
	{STREAM_INITIATOR, STREAM_LINGERING, lingering},
	{STREAM_INITIATOR, STREAM_LINGERING, lingering_behind_own_fin},
	{STREAM_INITIATOR, STREAM_CLOSED, rejected},
	{STREAM_RESPONDER, STREAM_IDLE, none},
	{STREAM_RESPONDER, STREAM_REQ_WAIT, req_wait},
	{STREAM_RESPONDER, STREAM_REQ_WAIT, req_half_read},
	{STREAM_RESPONDER, STREAM_REQ_RCVD, req_rcvd},
	{STREAM_RESPONDER, STREAM_REP_SENT, rep_sent},
	{STREAM_RESPONDER, STREAM_REP_SENT, rtr_awaited},
	{STREAM_RESPONDER, STREAM_REP_SENT, hello_before_reply},
	{STREAM_RESPONDER, STREAM_HELLO, hello_responder},
	{STREAM_RESPONDER, STREAM_DRAINING, draining_before_hello},
	{STREAM_RESPONDER, STREAM_LIVE, live_with_hello},
	{STREAM_RESPONDER, STREAM_LIVE, live_responder},
	{STREAM_RESPONDER, STREAM_LIVE, held},
	{STREAM_RESPONDER, STREAM_CLOSING, closing_failed},
	{STREAM_RESPONDER, STREAM_CLOSING, rejecting},
	{STREAM_RESPONDER, STREAM_CLOSED, left_by_the_peer},
};
const size_t walk_n_places = ARRAY_LEN(walk_places);
