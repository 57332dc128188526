/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start-up frames that were captured from Linux siw are fed to an initiator and a responder. With
 * rping's parameters (1/1, no private data) and without extensions, the stream has to send the same
 * bytes as siw.
 */
#include "link.h"

#include <stdio.h>
#include <string.h>

#include "lib/pcap.h"
#include "softrnic/proto/mpa.h"

#define RPING_PORT 7174

struct golden {
	const char *file;
	uint8_t revision;
	bool crc, p2p;
};

static const struct golden captures[] = {
	{"siw-rping.pcap", 2, false, false},
	{"siw-rping-crc.pcap", 2, true, false},
	{"siw-rping-p2p.pcap", 2, false, true},
	{"siw-rping-rev1.pcap", 1, false, false},
};

static const struct stream_params rping = {.ird = 1, .ord = 1};
static struct link l;
static struct pcap capture;
static struct pcap_stream frame[2]; /* the start-up frames of request and reply */

static void load(const struct golden *g)
{
	const struct pcap_conn *conn;
	char path[512];

	snprintf(path, sizeof(path), "%s/siw/%s", TEST_DATA_DIR, g->file);
	assert_int_equal(pcap_load(&capture, path), 0);
	conn = pcap_find(&capture, RPING_PORT);
	assert_non_null(conn);
	for (int i = 0; i < 2; i++) {
		frame[i] = conn->stream[i];
		frame[i].len = (size_t)mpa_start_decode_header(frame[i].data);
	}
}

static struct stream_config as_siw(enum stream_role role, const struct golden *g)
{
	struct stream_config cfg = link_config(role);

	cfg.crc = g->crc;
	cfg.p2p = g->p2p;
	cfg.revision = g->revision;
	cfg.offer_consent = false;
	return cfg;
}

static void assert_sent(struct side *from, const struct pcap_stream *expected)
{
	uint8_t sent[MPA_START_MAX];

	assert_int_equal(side_take(from, sent, sizeof(sent)), expected->len);
	assert_memory_equal(sent, expected->data, expected->len);
}

static void as_initiator(const struct golden *g, size_t chunk)
{
	struct stream_config cfg = as_siw(STREAM_INITIATOR, g);
	const struct qp_stream *agreed;

	link_init(&l, &cfg, NULL);
	l.a.chunk = chunk;
	link_dial(&l, &rping);
	assert_sent(&l.a, &frame[0]);
	side_feed(&l.a, frame[1].data, frame[1].len);
	link_run(&l);
	agreed = stream_agreed(l.a.s);
	assert_state(&l.a, LIVE);
	assert_int_equal(agreed->crc, g->crc);
	assert_int_equal(agreed->rtr_out, g->p2p ? QP_RTR_WRITE : QP_RTR_NONE);
	assert_false(agreed->consent || agreed->markers);
	assert_int_equal(agreed->ird, 1);
	assert_int_equal(agreed->ord, 1);
	link_fini(&l);
}

static void as_responder(const struct golden *g, size_t chunk)
{
	struct stream_config cfg = as_siw(STREAM_RESPONDER, g);
	const struct qp_stream *agreed;

	cfg.crc = false; /* siw's answer to a request with CRC is the same, so test without CRC */
	link_init(&l, NULL, &cfg);
	l.b.chunk = chunk;
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	side_feed(&l.b, frame[0].data, frame[0].len);
	link_run(&l);
	assert_state(&l.b, REQ_RCVD);
	assert_int_equal(stream_accept(l.b.s, &rping, LINK_MSS, l.now, &l.b.u), 0);
	link_run(&l);
	assert_sent(&l.b, &frame[1]);
	agreed = stream_agreed(l.b.s);
	assert_int_equal(agreed->crc, g->crc);
	assert_int_equal(agreed->rtr_in, g->p2p ? QP_RTR_WRITE : QP_RTR_NONE);
	assert_true(agreed->hold_tx);
	assert_int_equal(agreed->ird, 1);
	assert_int_equal(agreed->ord, 1);
	link_fini(&l);
}

static void we_send_what_siw_sends(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(captures); i++) {
		load(&captures[i]);
		for (size_t chunk = 1; chunk < 30; chunk++) {
			as_initiator(&captures[i], chunk);
			as_responder(&captures[i], chunk);
		}
		pcap_fini(&capture);
	}
}

/* siw connects as a peer that sends first: its RTR message and the bytes after it must reach the
 * QP. */
static void siws_rtr_establishes_us(void **state)
{
	struct stream_config cfg = as_siw(STREAM_RESPONDER, &captures[2]);
	const struct pcap_conn *conn;

	load(&captures[2]);
	conn = pcap_find(&capture, RPING_PORT);
	link_init(&l, NULL, &cfg);
	side_add_qp(&l.b);
	stream_on_incoming(l.b.s, l.now, &l.b.u);
	side_feed(&l.b, frame[0].data, frame[0].len);
	link_run(&l);
	assert_int_equal(stream_accept(l.b.s, &rping, LINK_MSS, l.now, &l.b.u), 0);
	link_run(&l);
	assert_state(&l.b, REP_SENT);
	side_feed(&l.b, conn->stream[0].data + frame[0].len, 20);
	link_run(&l);
	assert_state(&l.b, LIVE);
	assert_int_equal(l.b.seen[STREAM_EV_ESTABLISHED], 1);
	link_fini(&l);
	pcap_fini(&capture);
}

/* siw ignores the bits of an offer of consent, so its answer is not a consent. */
static void siw_does_not_consent(void **state)
{
	struct stream_config cfg = link_config(STREAM_INITIATOR);

	load(&captures[1]);
	link_init(&l, &cfg, NULL);
	link_dial(&l, &rping);
	side_feed(&l.a, frame[1].data, frame[1].len);
	link_run(&l);
	assert_state(&l.a, LIVE);
	assert_false(stream_agreed(l.a.s)->consent);
	link_fini(&l);
	pcap_fini(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(we_send_what_siw_sends),
		cmocka_unit_test(siws_rtr_establishes_us),
		cmocka_unit_test(siw_does_not_consent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
