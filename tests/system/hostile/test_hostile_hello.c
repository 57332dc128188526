/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostile_hello.c -- peers that agree to the extensions, and then send no HELLO, two HELLOs, a
 * malformed HELLO, or another message first. The target must place none of their bytes, and must
 * close only these peers' connections.
 */
#include "system/lib/check.h"

#include <errno.h>

#include "base/clock.h"
#include "system/lib/client.h"
#include "system/lib/rawpeer.h"
#include "system/lib/remote.h"

#define SIZE       65536
#define REQUEST_MS 1500
#define SILENT     50
#define GARBAGES   100

static struct remote target;
static struct client bystander;
static struct raw peer, silent[SILENT];

static int start(void **state)
{
	return remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:65536:0xff", NULL},
			    (const char *[]){"SOFTRNIC_REQUEST_MS=1500", NULL}) || /* REQUEST_MS */
	       client_open(&bystander, 4096) ||
	       client_connect(&bystander, target.port, NULL);
}

static int stop(void **state)
{
	client_close(&bystander);
	return proc_finish(&target.proc);
}

static void bystander_goes_on(void)
{
	OK(client_write(&bystander, 0, 0, 64, NULL));
	OK(client_flush(&bystander, 0, 0, 64, RPMA_FLUSH_TYPE_VISIBILITY, NULL));
	OK(client_echo(&bystander, 32));
}

/* Connect with consent, and receive the target's HELLO, but send no HELLO. */
static void connect_mute(struct raw *r)
{
	const uint8_t *payload;
	struct ddp_hdr hdr;

	assert_int_equal(raw_connect_mute(r, target.port, RAW_EXTENSIONS), 0);
	assert_true(r->reply.rtr_send && !r->reply.p2p);
	/* The length depends on the target's features. */
	assert_in_range(raw_expect(r, RDMAP_EXT_REQ, &hdr, &payload), EXT_HELLO_LEN, EXT_HELLO_MAX);
	assert_int_equal(hdr.qn, DDP_QN_CONTROL);
	assert_int_equal(hdr.msn, DDP_FIRST_MSN);
	assert_int_equal(ext_word_of(payload).kind, EXT_HELLO);
}

static void expect_refused(const char *what, unsigned error)
{
	int got = raw_expect_terminate(&peer, NULL);

	if (got != (int)error)
		fail_msg("%s: %#x instead of %#x", what, (unsigned)got, error);
	raw_close(&peer);
	bystander_goes_on();
}

static void a_peer_that_never_sends_hello_is_dropped_in_time(void **state)
{
	uint64_t begin = clock_now_ns(), ms;

	for (int i = 0; i < SILENT; i++)
		connect_mute(&silent[i]);
	bystander_goes_on();
	for (int i = 0; i < SILENT; i++)
		assert_int_equal(raw_expect_end(&silent[i], RAW_WAIT_MS), 0);
	ms = (clock_now_ns() - begin) / NSEC_PER_MS;
	if (ms < REQUEST_MS || ms > REQUEST_MS + 4000)
		fail_msg("it took %d ms", (int)ms);
	for (int i = 0; i < SILENT; i++)
		raw_close(&silent[i]);
	assert_int_equal(remote_wait_conns(&target, 1, RAW_WAIT_MS), 0);
	bystander_goes_on();
}

static void a_peer_that_hangs_up_instead_is_forgotten(void **state)
{
	for (int i = 0; i < SILENT; i++) {
		connect_mute(&peer);
		raw_close(&peer);
	}
	assert_int_equal(remote_wait_conns(&target, 1, RAW_WAIT_MS), 0);
	bystander_goes_on();
}

static void data_before_it_are_refused_and_not_placed(void **state)
{
	static const uint8_t bytes[16] = {[0 ... 15] = 0xee};
	struct raw_region *region = &peer.region[0];

	connect_mute(&peer);
	assert_int_equal(raw_write(&peer, region->stag, region->addr + 4096, bytes, 16), 0);
	raw_hello(&peer);
	expect_refused("a Write before the HELLO", TERM_RDMAP_UNEXPECTED_OPCODE);
	assert_string_equal(proc_ask(&target.proc, "peek 0 4096 4"), "00000000");
	connect_mute(&peer);
	assert_int_equal(raw_message(&peer, bytes, 16), 0);
	expect_refused("a Send before the HELLO", TERM_RDMAP_UNEXPECTED_OPCODE);
	connect_mute(&peer);
	assert_int_equal(raw_flush(&peer, region->stag, region->addr, 8, EXT_FLUSH_VISIBLE), 0);
	expect_refused("a Flush before the HELLO", TERM_RDMAP_UNEXPECTED_OPCODE);
}

static void a_second_one_is_refused(void **state)
{
	assert_int_equal(raw_connect(&peer, target.port, RAW_EXTENSIONS), 0);
	assert_int_equal(raw_hello(&peer), 0);
	expect_refused("a second HELLO", TERM_RDMAP_STREAM_CATASTROPHIC);
}

static void nonsense_is_refused(void **state)
{
#define VERSION "\x01\0\0\0\0\x01\0\x04\0\x02\0\0"
	static const struct {
		const char *what;
		size_t len;
		unsigned error;
		const char *bytes;
	} cases[] = {
		{"no items", 4, 0x0207, "\x01\0\0\0"},
		{"version 1", 12, 0x0207, "\x01\0\0\0\0\x01\0\x04\0\x01\0\0"},
		{"an item past the end", 16, 0x0207, VERSION "\0\x10\xff\xff"},
		{"half an item", 14, 0x0207, VERSION "\0\x10"},
		{"a version of 2 bytes", 12, 0x0207, "\x01\0\0\0\0\x01\0\x02\0\x02\0\0"},
		{"a largest ULPDU of 16 bytes", 20, 0x0207, VERSION "\0\x04\0\x04\0\0\0\x10"},
		{"2 bytes", 2, 0x0207, "\x01\0"},
		{"a heartbeat", 16, 0x0206, "\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		connect_mute(&peer);
		assert_int_equal(raw_control(&peer, RDMAP_EXT_REQ, cases[i].bytes, cases[i].len),
				 0);
		expect_refused(cases[i].what, cases[i].error);
	}
}

static void a_long_one_is_read_to_its_limit(void **state)
{
	for (size_t more = 0; more < 2; more++) {
		uint8_t bytes[EXT_MAX + 1] = VERSION "\0\x21\x03\xf0"; /* an item of 1008 bytes */
		const uint8_t *payload;
		struct ddp_hdr hdr;

		connect_mute(&peer);
		assert_int_equal(raw_control(&peer, RDMAP_EXT_REQ, bytes, EXT_MAX + more), 0);
		if (more) {
			expect_refused("1025 bytes", TERM_DDP_TOO_LONG);
			continue;
		}
		assert_int_equal(raw_read(&peer, peer.region[0].stag, peer.region[0].addr, 8), 0);
		assert_int_equal(raw_expect(&peer, RDMAP_READ_RESP, &hdr, &payload), 8);
		raw_close(&peer);
	}
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static void garbage_ends_its_own_connection(void **state)
{
	uint64_t seed = 42;

	for (int i = 0; i < GARBAGES; i++) {
		uint8_t bytes[200] = {EXT_HELLO};

		for (size_t k = 4; k < sizeof(bytes); k++)
			bytes[k] = (uint8_t)next_random(&seed);
		connect_mute(&peer);
		raw_control(&peer, RDMAP_EXT_REQ, bytes, 4 + next_random(&seed) % 196);
		assert_true(raw_expect_terminate(&peer, NULL) > 0);
		raw_close(&peer);
	}
	bystander_goes_on();
}

static void requests_of_unknown_kind_or_wrong_length_are_refused(void **state)
{
	static const struct {
		const char *what;
		uint8_t kind;
		size_t len;
		unsigned error;
	} cases[] = {
		{"kind 0", 0, 24, 0x0206},
		{"the first unknown kind", EXT_KINDS, 24, 0x0206},
		{"kind 255", 255, 24, 0x0206},
		{"a HELLO among requests", EXT_HELLO, 24, 0x0206},
		{"a heartbeat among requests", EXT_HEARTBEAT, 16, 0x0206},
		{"a short Flush", EXT_FLUSH, 23, 0x0207},
		{"a long Flush", EXT_FLUSH, 25, 0x1205},
		{"a long Flush of everything", EXT_FLUSH_ALL, 24, 0x1205},
		{"a short Atomic Write", EXT_ATOMIC_WRITE, 16, 0x0207},
		{"a Flush without flags", EXT_FLUSH, 24, 0x0207},
		{"a Verify without an algorithm", EXT_VERIFY, 24, 0x0207},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ddp_hdr hdr = {.last = true,
				      .version = DDP_VERSION,
				      .ulp = rdmap_ctrl(RDMAP_EXT_REQ),
				      .qn = DDP_QN_REQUEST};
		uint8_t bytes[64] = {cases[i].kind};

		assert_int_equal(raw_connect(&peer, target.port, RAW_EXTENSIONS), 0);
		assert_int_equal(raw_segment(&peer, &hdr, bytes, cases[i].len), 0);
		expect_refused(cases[i].what, cases[i].error);
	}
}

static void unknown_control_messages_are_ignored(void **state)
{
	const uint8_t *payload;
	struct ddp_hdr hdr;

	assert_int_equal(raw_connect(&peer, target.port, RAW_EXTENSIONS), 0);
	for (int i = 0; i < 200; i++) {
		uint8_t bytes[EXT_MAX] = {(uint8_t)(100 + i % 100)};

		assert_int_equal(raw_control(&peer, i & 1 ? RDMAP_EXT_RESP : RDMAP_EXT_REQ, bytes,
					     4 + (size_t)i * 5),
				 0);
	}
	assert_int_equal(raw_read(&peer, peer.region[0].stag, peer.region[0].addr, 8), 0);
	assert_int_equal(raw_expect(&peer, RDMAP_READ_RESP, &hdr, &payload), 8);
	raw_close(&peer);
	bystander_goes_on();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_never_sends_hello_is_dropped_in_time),
		cmocka_unit_test(a_peer_that_hangs_up_instead_is_forgotten),
		cmocka_unit_test(data_before_it_are_refused_and_not_placed),
		cmocka_unit_test(a_second_one_is_refused),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(a_long_one_is_read_to_its_limit),
		cmocka_unit_test(garbage_ends_its_own_connection),
		cmocka_unit_test(requests_of_unknown_kind_or_wrong_length_are_refused),
		cmocka_unit_test(unknown_control_messages_are_ignored),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
