/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decode captured streams of Linux siw to the last byte. In each round rping does: client Send (its
 * buffer), server Read of that buffer, server Send, client Send, server Write, server Send.
 */
#include "lib/unit.h"

#include <stdio.h>

#include "lib/pcap.h"
#include "softrnic/proto/mpa.h"
#include "softrnic/proto/rdmap.h"

#define RPING_PORT     7174
#define RPING_INFO_LEN 16 /* content of rping's Sends: address, rkey, size */

enum side { CLIENT, SERVER };

/* The bytes and messages that one direction carried after its start-up frame. */
struct carried {
	unsigned fpdus;
	unsigned segments[RDMAP_OPCODES], messages[RDMAP_OPCODES];
	size_t bytes[RDMAP_OPCODES]; /* bytes of each opcode after the DDP header */
	uint32_t msn[DDP_QN_COUNT];  /* the last MSN of each queue */
	size_t fpdu_max;
	size_t left_over; /* bytes of an FPDU that the capture cut off */
	unsigned crc_right;
};

static struct pcap capture;
static const struct pcap_conn *conn;
static struct mpa_start start[2];
static struct carried carried[2];

/* A message under way: its next segment must begin where the last one ended. */
struct progress {
	bool open;
	uint32_t mo, stag;
	uint64_t to;
};

static void check_order(const struct ddp_hdr *hdr, size_t len, struct carried *t,
			struct progress *now)
{
	if (hdr->tagged && now->open) {
		assert_int_equal(hdr->stag, now->stag);
		assert_int_equal(hdr->to, now->to);
	}
	if (!hdr->tagged) {
		uint32_t expected = t->msn[hdr->qn] + (now->open ? 0 : 1);

		assert_int_equal(hdr->msn, expected);
		assert_int_equal(hdr->mo, now->open ? now->mo : 0);
		t->msn[hdr->qn] = expected;
	}
	*now = (struct progress){.open = !hdr->last,
				 .mo = hdr->mo + (uint32_t)len,
				 .stag = hdr->stag,
				 .to = hdr->to + len};
}

static void on_fpdu(const uint8_t *fpdu, size_t ulpdu_len, struct carried *t, struct progress *now)
{
	size_t fpdu_len = mpa_fpdu_len(ulpdu_len), len;
	struct ddp_hdr hdr;
	int hdr_len = ddp_decode(fpdu + MPA_LENGTH_LEN, ulpdu_len, &hdr);
	enum rdmap_opcode op = rdmap_ctrl_opcode(hdr.ulp);

	assert_true(hdr_len > 0);
	len = ulpdu_len - (size_t)hdr_len;
	assert_int_equal(rdmap_check(rdmap_op_of(&hdr), &hdr, fpdu + MPA_LENGTH_LEN + hdr_len, len,
				     RDMAP_LEVEL_BASE),
			 0);
	check_order(&hdr, len, t, now);
	t->fpdus++;
	t->segments[op]++;
	t->messages[op] += hdr.last;
	t->bytes[op] += len;
	t->crc_right += mpa_fpdu_is_intact(fpdu, fpdu_len);
	if (fpdu_len > t->fpdu_max)
		t->fpdu_max = fpdu_len;
}

static void walk(const struct pcap_stream *s, struct mpa_start *first, struct carried *t)
{
	struct progress now = {0};
	const uint8_t *pdata;
	int at = mpa_start_decode(s->data, s->len, first, &pdata);
	size_t left;

	assert_true(at > 0);
	*t = (struct carried){0};
	for (left = s->len - (size_t)at; left >= MPA_LENGTH_LEN;) {
		const uint8_t *p = s->data + s->len - left;
		size_t ulpdu_len = (size_t)(p[0] << 8 | p[1]);

		if (mpa_fpdu_len(ulpdu_len) > left)
			break;
		on_fpdu(p, ulpdu_len, t, &now);
		left -= mpa_fpdu_len(ulpdu_len);
	}
	t->left_over = left;
}

static void read_capture(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/siw/%s", TEST_DATA_DIR, name);
	assert_int_equal(pcap_load(&capture, path), 0);
	conn = pcap_find(&capture, RPING_PORT);
	assert_non_null(conn);
	for (int side = CLIENT; side <= SERVER; side++)
		walk(&conn->stream[side], &start[side], &carried[side]);
	assert_false(start[CLIENT].reply);
	assert_true(start[SERVER].reply);
	assert_false(start[SERVER].reject);
}

static int drop_capture(void **state)
{
	pcap_fini(&capture);
	return 0;
}

/* Check a complete run of rping with this many rounds, each of `size` bytes, in messages of
 * `segments` segments. */
static void assert_rping(unsigned rounds, size_t size, unsigned segments)
{
	const struct carried *c = &carried[CLIENT], *s = &carried[SERVER];

	assert_int_equal(c->messages[RDMAP_SEND], 2 * rounds);
	assert_int_equal(c->bytes[RDMAP_SEND], 2 * rounds * RPING_INFO_LEN);
	assert_int_equal(c->messages[RDMAP_READ_RESP], rounds);
	assert_int_equal(c->segments[RDMAP_READ_RESP], rounds * segments);
	assert_int_equal(c->bytes[RDMAP_READ_RESP], rounds * size);
	assert_int_equal(s->messages[RDMAP_READ_REQ], rounds);
	assert_int_equal(s->bytes[RDMAP_READ_REQ], rounds * RDMAP_READ_REQ_LEN);
	assert_int_equal(s->messages[RDMAP_SEND], 2 * rounds);
	assert_int_equal(s->messages[RDMAP_WRITE], rounds);
	assert_int_equal(s->segments[RDMAP_WRITE], rounds * segments);
	assert_int_equal(s->bytes[RDMAP_WRITE], rounds * size);
	assert_int_equal(c->fpdus, rounds * (2 + segments) + c->segments[RDMAP_WRITE]);
	assert_int_equal(s->fpdus, rounds * (3 + segments));
	assert_int_equal(c->msn[DDP_QN_SEND], 2 * rounds);
	assert_int_equal(s->msn[DDP_QN_SEND], 2 * rounds);
	assert_int_equal(s->msn[DDP_QN_REQUEST], rounds);
	assert_int_equal(c->left_over + s->left_over, 0);
	assert_true(conn->stream[CLIENT].fin && conn->stream[SERVER].fin);
}

static void assert_start(uint8_t revision, bool crc, bool p2p)
{
	for (int side = CLIENT; side <= SERVER; side++) {
		assert_int_equal(start[side].revision, revision);
		assert_int_equal(start[side].enhanced, revision == 2);
		assert_int_equal(start[side].crc, crc);
		assert_int_equal(start[side].p2p, p2p);
		assert_false(start[side].markers);
		assert_int_equal(start[side].pd_len, 0);
	}
}

static void three_rounds_of_rping(void **state)
{
	read_capture("siw-rping.pcap");
	assert_start(2, false, false);
	assert_int_equal(start[CLIENT].ird, 1);
	assert_int_equal(start[CLIENT].ord, 1);
	assert_rping(3, 64, 1);
	/* Without CRC siw sends zero in the CRC field. */
	assert_int_equal(carried[CLIENT].crc_right + carried[SERVER].crc_right, 0);
}

static void two_rounds_with_messages_of_several_fpdus(void **state)
{
	read_capture("siw-rping-big.pcap");
	assert_start(2, false, false);
	assert_rping(2, 65000, 2);
	assert_true(carried[SERVER].fpdu_max > 32000);
}

static void two_rounds_with_every_crc_right(void **state)
{
	read_capture("siw-rping-crc.pcap");
	assert_start(2, true, false);
	assert_rping(2, 64, 1);
	assert_int_equal(carried[CLIENT].crc_right, carried[CLIENT].fpdus);
	assert_int_equal(carried[SERVER].crc_right, carried[SERVER].fpdus);
}

static void two_rounds_after_a_write_as_rtr(void **state)
{
	read_capture("siw-rping-p2p.pcap");
	assert_start(2, false, true);
	assert_true(start[SERVER].rtr_write);
	assert_false(start[SERVER].rtr_read || start[SERVER].rtr_send);
	assert_int_equal(carried[CLIENT].messages[RDMAP_WRITE], 1);
	assert_int_equal(carried[CLIENT].bytes[RDMAP_WRITE], 0);
	assert_rping(2, 64, 1);
}

static void revision_1_gets_as_far_as_the_first_send(void **state)
{
	read_capture("siw-rping-rev1.pcap");
	assert_start(1, false, false);
	assert_int_equal(carried[CLIENT].fpdus, 1);
	assert_int_equal(carried[CLIENT].messages[RDMAP_SEND], 1);
	assert_int_equal(carried[SERVER].fpdus, 0);
	assert_int_equal(carried[CLIENT].left_over + carried[SERVER].left_over, 0);
}

/*
 * With an Ethernet MTU the bytes of an FPDU fill one TCP segment, and its CRC is in the next one.
 * The capture lacks frames of the server's second Write, so the stream ends after that Write's
 * first FPDU.
 */
static void fpdus_of_an_ethernet_mtu(void **state)
{
	const struct carried *c = &carried[CLIENT], *s = &carried[SERVER];

	read_capture("siw-rping-veth.pcap");
	assert_start(2, false, false);
	assert_int_equal(c->fpdu_max, 1448);
	assert_int_equal(c->messages[RDMAP_SEND], 4);
	assert_int_equal(c->messages[RDMAP_READ_RESP], 2);
	assert_int_equal(c->segments[RDMAP_READ_RESP], 2 * 8);
	assert_int_equal(c->bytes[RDMAP_READ_RESP], 2 * 10000);
	assert_int_equal(s->fpdu_max, 1448);
	assert_int_equal(s->messages[RDMAP_READ_REQ], 2);
	assert_int_equal(s->messages[RDMAP_SEND], 3);
	assert_int_equal(s->messages[RDMAP_WRITE], 1);
	assert_int_equal(s->segments[RDMAP_WRITE], 8 + 1);
	assert_int_equal(s->bytes[RDMAP_WRITE], 10000 + 1428);
	assert_int_equal(c->left_over + s->left_over, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(three_rounds_of_rping, drop_capture),
		cmocka_unit_test_teardown(two_rounds_with_messages_of_several_fpdus, drop_capture),
		cmocka_unit_test_teardown(two_rounds_with_every_crc_right, drop_capture),
		cmocka_unit_test_teardown(two_rounds_after_a_write_as_rtr, drop_capture),
		cmocka_unit_test_teardown(revision_1_gets_as_far_as_the_first_send, drop_capture),
		cmocka_unit_test_teardown(fpdus_of_an_ethernet_mtu, drop_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
