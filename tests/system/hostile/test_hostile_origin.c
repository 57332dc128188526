/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostile_origin.c -- peers that abuse the question about former connections (doc/wire.md s6,
 * "Origin"): they send malformed questions, or so many that the target could have no space for
 * questions of other peers.
 */
#include "system/lib/check.h"

#include "softrnic/proto/ext_origin.h"
#include "system/lib/rawpeer.h"
#include "system/lib/remote.h"

#define END_MS 2000 /* less than the time limit for a connection's first Origin */
#define ASKERS 20   /* each connection sends 64 questions, in total more than the target stores */

static struct remote target;
static struct raw peer, silent;

static int start(void **state)
{
	return remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:65536:0xff", NULL},
			    NULL);
}

static int stop(void **state)
{
	return proc_finish(&target.proc);
}

/* Connect as a peer that supports Origin: its HELLO has an instance. */
static void connect_to_ask(struct raw *r)
{
	struct ext_hello hello = {.major = EXT_HELLO_MAJOR,
				  .minor = EXT_HELLO_MINOR,
				  .max_ulpdu = MPA_ULPDU_MAX,
				  .has_instance = true};
	uint8_t bytes[EXT_HELLO_MAX];
	int len = ext_hello_encode(bytes, sizeof(bytes), &hello);

	assert_int_equal(raw_connect_mute(r, target.port, RAW_EXTENSIONS), 0);
	assert_int_equal(raw_control(r, RDMAP_EXT_REQ, bytes, (size_t)len), 0);
}

static struct ext_origin question(uint8_t id)
{
	return (struct ext_origin){.asks = true,
				   .limit_ms = 1000,
				   .serial = 3,
				   .id = {id},
				   .n = 1,
				   .ranges = {{1, 2}}};
}

static void send_origin(const struct ext_origin *origin)
{
	uint8_t bytes[EXT_MAX];
	int len = ext_origin_encode(bytes, sizeof(bytes), origin);

	assert_int_equal(raw_control(&peer, RDMAP_EXT_REQ, bytes, (size_t)len), 0);
}

static unsigned take_status(void)
{
	const uint8_t *payload;
	struct ddp_hdr hdr;

	assert_int_equal(raw_expect(&peer, RDMAP_EXT_RESP, &hdr, &payload), EXT_ANSWER_LEN);
	assert_int_equal(ext_word_of(payload).kind, EXT_ORIGIN);
	return ext_word_of(payload).arg;
}

static void expect_refused(const char *what, const struct ext_origin *origin)
{
	int got;

	connect_to_ask(&peer);
	send_origin(origin);
	got = raw_expect_terminate(&peer, NULL);
	if (got != TERM_RDMAP_STREAM_CATASTROPHIC)
		fail_msg("%s: %#x", what, (unsigned)got);
	raw_close(&peer);
}

static void nonsense_is_refused(void **state)
{
	struct ext_origin o = question(1);

	o.serial = 0;
	expect_refused("no serial number", &o);
	o = question(1);
	o.asks = false;
	expect_refused("names others and does not ask", &o);
	o = question(1);
	o.n = 2;
	o.ranges[1] = (struct ext_range_of_serials){2, 9};
	expect_refused("overlapping ranges", &o);
	o.ranges[1] = (struct ext_range_of_serials){9, 8};
	expect_refused("a range that ends before it begins", &o);
}

/* As long as a silent connection has sent no Origin, the target must store each question. */
static void peers_that_ask_without_end_keep_no_other_from_asking(void **state)
{
	const uint8_t *payload;
	struct ext_origin o;
	struct ddp_hdr hdr;

	assert_int_equal(raw_connect_mute(&silent, target.port, RAW_EXTENSIONS), 0);
	for (int i = 0; i < ASKERS; i++) {
		connect_to_ask(&peer);
		o = question((uint8_t)i);
		do
			send_origin(&o);
		while (take_status() == EXT_ORIGIN_CUT);
		raw_close(&peer);
	}
	connect_to_ask(&peer);
	o = question(ASKERS);
	send_origin(&o);
	assert_int_equal(take_status(), EXT_ORIGIN_CUT);
	raw_close(&peer);
	/* This message is the target's HELLO. */
	assert_true(raw_expect(&silent, RDMAP_EXT_REQ, &hdr, &payload) > 0);
	assert_int_equal(raw_expect_end(&silent, END_MS), 0);
	raw_close(&silent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(peers_that_ask_without_end_keep_no_other_from_asking),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
