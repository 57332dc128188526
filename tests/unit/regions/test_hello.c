/* SPDX-License-Identifier: BSD-3-Clause */
/* The private data that client and server exchange, byte by byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regions/hello.h"

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
	reply.content = (struct hello_content){
		.state = HELLO_CONTENT_WHOLE, .length = 9000000, .time_ns = 0x123456789abcdef};
	memset(reply.content.digest, 0xcd, HELLO_DIGEST);
	return reply;
}

/* Copy exactly len bytes to the heap, so that AddressSanitizer reports a read past the end. */
static struct rpma_conn_private_data exact(const uint8_t *buf, size_t len)
{
	struct rpma_conn_private_data pdata = {malloc(len ? len : 1), (uint8_t)len};

	memcpy(pdata.ptr, buf, len);
	return pdata;
}

static void greetings_have_their_documented_bytes(void **state)
{
	static const uint8_t want[] = {'R', 'P', 'M', 'A', 5, 2, 1, 4, 'p', 'o', 'o', 'l'};
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

	/* InfiniBand pads private data with zeros, so the decoder gets the whole buffer */
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
	assert_true(hello_reply_encode(&reply, buf) <= 196);
	/* no part of the reply was omitted */
	assert_true(hello_reply_encode(&reply, buf) < HELLO_MAX);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(greetings_have_their_documented_bytes),
		cmocka_unit_test(greetings_come_back_as_they_went),
		cmocka_unit_test(cut_greetings_are_refused_at_every_length),
		cmocka_unit_test(lengths_beyond_their_fields_are_refused),
		cmocka_unit_test(the_largest_greetings_fit_infiniband),
		cmocka_unit_test(another_version_is_recognised_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
