/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the rpma program that need no process: greetings, addresses, sizes, percentiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "address.h"
#include "cli.h"
#include "hello.h"
#include "latency.h"
#include "note_limit.h"

static const struct hello_request sample_request = {
	.version = HELLO_VERSION, .access = HELLO_WRITE, .has_secret = true, .region = "pool"};

static struct hello_reply sample_reply(void)
{
	struct hello_reply reply = {.version = HELLO_VERSION,
				    .status = HELLO_OK,
				    .durability = RPMA_DURABILITY_FILE,
				    .size = 0x1122334455667788,
				    .region = "pool",
				    .pcfg_len = 1,
				    .mr_len = 21};

	reply.pcfg[0] = 1;
	memset(reply.mr, 0xab, reply.mr_len);
	return reply;
}

/* A copy of exactly len bytes on the heap, so that AddressSanitizer sees a read past its end. */
static struct rpma_conn_private_data exact(const uint8_t *buf, size_t len)
{
	struct rpma_conn_private_data pdata = {malloc(len ? len : 1), (uint8_t)len};

	memcpy(pdata.ptr, buf, len);
	return pdata;
}

static void greetings_have_their_documented_bytes(void **state)
{
	static const uint8_t want[] = {'R', 'P', 'M', 'A', 3, 2, 1, 4, 'p', 'o', 'o', 'l'};
	uint8_t buf[HELLO_MAX];

	assert_int_equal(hello_request_encode(&sample_request, buf), sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
}

static void greetings_come_back_as_they_went(void **state)
{
	struct hello_reply reply = sample_reply(), got;
	struct hello_request req;
	uint8_t buf[HELLO_MAX] = {0};
	struct rpma_conn_private_data pdata = {buf, HELLO_MAX};

	/* InfiniBand pads private data with zeros: decode from the whole buffer */
	hello_request_encode(&sample_request, buf);
	assert_true(hello_request_decode(&pdata, &req));
	assert_memory_equal(&req, &sample_request, sizeof(req));

	hello_reply_encode(&reply, buf);
	assert_true(hello_reply_decode(&pdata, &got));
	assert_memory_equal(&got, &reply, sizeof(got));
}

static void cut_greetings_are_refused_at_every_length(void **state)
{
	struct hello_reply reply = sample_reply(), got;
	struct hello_request req;
	struct rpma_conn_private_data pdata;
	uint8_t buf[HELLO_MAX];
	size_t len = hello_request_encode(&sample_request, buf);

	for (size_t cut = 0; cut < len; cut++) {
		pdata = exact(buf, cut);
		assert_false(hello_request_decode(&pdata, &req));
		free(pdata.ptr);
	}
	len = hello_reply_encode(&reply, buf);
	for (size_t cut = 0; cut < len; cut++) {
		pdata = exact(buf, cut);
		assert_false(hello_reply_decode(&pdata, &got));
		free(pdata.ptr);
	}
}

static void lengths_beyond_their_fields_are_refused(void **state)
{
	struct hello_request req;
	struct hello_reply reply = sample_reply(), got;
	uint8_t buf[HELLO_MAX] = {0};
	struct rpma_conn_private_data pdata = {buf, HELLO_MAX};

	hello_request_encode(&sample_request, buf);
	buf[7] = HELLO_NAME_MAX + 1;
	assert_false(hello_request_decode(&pdata, &req));

	hello_reply_encode(&reply, buf);
	buf[15] = HELLO_DESC_MAX + 1; /* length of the peer configuration's descriptor */
	assert_false(hello_reply_decode(&pdata, &got));
}

static void the_largest_greetings_fit_infiniband(void **state)
{
	struct hello_request req = sample_request;
	struct hello_reply reply = sample_reply();
	uint8_t buf[HELLO_MAX];

	memset(req.region, 'x', HELLO_NAME_MAX);
	memset(reply.region, 'x', HELLO_NAME_MAX);
	reply.pcfg_len = reply.mr_len = HELLO_DESC_MAX;
	assert_true(hello_request_encode(&req, buf) <= 56);
	assert_true(hello_reply_encode(&reply, buf) <= HELLO_MAX);
}

static void another_version_is_recognised_as_such(void **state)
{
	static const uint8_t future[] = {'R', 'P', 'M', 'A', 9};
	struct rpma_conn_private_data pdata = exact(future, sizeof(future));
	struct hello_request req;

	assert_true(hello_request_decode(&pdata, &req));
	assert_int_equal(req.version, 9);
	free(pdata.ptr);
}

static void check_address(const char *text, const char *host, const char *port)
{
	struct address addr;
	const char *why;

	assert_true(address_parse(text, &addr, &why));
	assert_string_equal(addr.host, host);
	assert_string_equal(addr.port, port);
}

static void addresses_are_taken_apart(void **state)
{
	check_address("host", "host", "7204");
	check_address("host:1", "host", "1");
	check_address("192.0.2.1:65535", "192.0.2.1", "65535");
	check_address("::1", "::1", "7204");
	check_address("2001:db8::7", "2001:db8::7", "7204");
	check_address("[::1]", "::1", "7204");
	check_address("fe80::1%eth0", "fe80::1%eth0", "7204");
	check_address("[fe80::1%eth0]:9", "fe80::1%eth0", "9");
	check_address("[::1]:99", "::1", "99");
}

static void bad_addresses_are_explained(void **state)
{
	static const char *const bad[] = {"",     ":1", "host:",  "host:0", "host:x", "host:65536",
					  "[::1", "[]", "[host]", "[::1]x", "[::1]:"};
	struct address addr;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *why = NULL;

		assert_false(address_parse(bad[i], &addr, &why));
		assert_non_null(why);
	}
}

static void sizes_have_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} good[] = {{"0", 0},         {"1", 1},         {"4096B", 4096},    {"64k", 65536},
		    {"64KiB", 65536}, {"1Mb", 1 << 20}, {"2G", 2ull << 30}, {"1T", 1ull << 40}};
	static const char *const bad[] = {"",      "k",    "-1",       "1x",
					  "1KiBx", "1.5G", "8388608T", "99999999999999999999"};
	uint64_t got;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(cli_parse_size(good[i].text, &got));
		assert_int_equal(got, good[i].want);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(cli_parse_size(bad[i], &got));
	assert_string_equal(cli_show_size(3 << 20).text, "3 MiB");
	assert_string_equal(cli_show_size(1500).text, "1500 bytes");
}

static void percentiles_are_nearest_ranks(void **state)
{
	struct latency samples;
	struct latency_summary sum;

	assert_int_equal(latency_init(&samples, 200), 0);
	for (uint64_t us = 200; us > 0; us--)
		latency_add(&samples, us * 1000);
	latency_add(&samples, 1); /* no room left: dropped */
	sum = latency_summarise(&samples);
	assert_int_equal(sum.count, 200);
	assert_int_equal((int)sum.min_us, 1);
	assert_int_equal((int)sum.median_us, 100);
	assert_int_equal((int)sum.p99_us, 198);
	assert_int_equal((int)sum.max_us, 200);
	latency_fini(&samples);
}

static void what_a_client_can_repeat_is_noted_a_few_times_in_a_period(void **state)
{
	struct note_limit limit = {0};
	uint64_t left_out, start = 7 * NOTE_LIMIT_PERIOD_S;
	unsigned lines = 0;

	for (int i = 0; i < 100; i++)
		lines += note_limit_admits(&limit, start, &left_out);
	assert_int_equal(lines, NOTE_LIMIT_LINES);
	assert_true(note_limit_admits(&limit, start + NOTE_LIMIT_PERIOD_S, &left_out));
	assert_int_equal(left_out, 100 - NOTE_LIMIT_LINES);
	assert_true(note_limit_admits(&limit, start + NOTE_LIMIT_PERIOD_S, &left_out));
	assert_int_equal(left_out, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greetings_have_their_documented_bytes),
		cmocka_unit_test(greetings_come_back_as_they_went),
		cmocka_unit_test(cut_greetings_are_refused_at_every_length),
		cmocka_unit_test(lengths_beyond_their_fields_are_refused),
		cmocka_unit_test(the_largest_greetings_fit_infiniband),
		cmocka_unit_test(another_version_is_recognised_as_such),
		cmocka_unit_test(addresses_are_taken_apart),
		cmocka_unit_test(bad_addresses_are_explained),
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(percentiles_are_nearest_ranks),
		cmocka_unit_test(what_a_client_can_repeat_is_noted_a_few_times_in_a_period),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
