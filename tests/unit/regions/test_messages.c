/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages that client and server exchange, and the proofs in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "regions/proof.h"
#include "service/secret.h"

static const struct hello_request request = {
	.version = HELLO_VERSION, .access = HELLO_WRITE, .has_secret = true, .region = "pool"};

static struct hello_reply make_reply(enum hello_status status)
{
	struct hello_reply reply = {.version = HELLO_VERSION,
				    .status = (uint8_t)status,
				    .durability = RPMA_DURABILITY_DAX,
				    .size = 0x123456789a,
				    .region = "pool",
				    .pcfg_len = 1,
				    .mr_len = 25,
				    .pcfg = {1}};

	memset(reply.mr, 0x77, reply.mr_len);
	if (status == HELLO_PROVE)
		memset(reply.nonce, 0x99, HELLO_NONCE);
	return reply;
}

static void a_demand_for_a_proof_carries_the_nonce(void **state)
{
	struct hello_reply reply = make_reply(HELLO_PROVE), back;
	uint8_t buf[HELLO_MAX], again[HELLO_MAX];
	size_t len = hello_reply_encode(&reply, buf);
	struct rpma_conn_private_data pdata = {buf, (uint8_t)len};

	assert_true(hello_reply_decode(&pdata, &back));
	/* Compare the encoded bytes, because structures may differ in their padding. */
	assert_int_equal(hello_reply_encode(&back, again), len);
	assert_memory_equal(again, buf, len);
	pdata.len--;
	assert_false(hello_reply_decode(&pdata, &back));
}

/* A message is decoded as it was encoded. With another length the message is refused. */
static void a_message_comes_back_as_it_went(void **state)
{
	struct hello_proof proof, proof_back;
	struct hello_grant grant = {.reply = make_reply(HELLO_OK)}, grant_back;
	uint8_t buf[HELLO_FROM_MAX + 1] = {0}, again[HELLO_FROM_MAX];
	size_t len;

	memset(&proof, 0x42, sizeof(proof));
	len = hello_proof_encode(&proof, buf);
	assert_true(hello_proof_decode(buf, len, &proof_back));
	assert_memory_equal(&proof_back, &proof, sizeof(proof));
	assert_false(hello_grant_decode(buf, len, &grant_back));
	assert_false(hello_proof_decode(buf, len + 1, &proof_back));
	while (len--)
		assert_false(hello_proof_decode(buf, len, &proof_back));
	memset(grant.mac, 0x24, sizeof(grant.mac));
	len = hello_grant_encode(&grant, buf);
	assert_true(hello_grant_decode(buf, len, &grant_back));
	assert_int_equal(hello_grant_encode(&grant_back, again), len);
	assert_memory_equal(again, buf, len);
	assert_false(hello_grant_decode(buf, len + 1, &grant_back));
	while (len--)
		assert_false(hello_grant_decode(buf, len, &grant_back));
}

static void the_longest_list_fits_and_a_longer_one_is_refused(void **state)
{
	static struct hello_list list = {.count = HELLO_ENTRY_MAX}, back;
	static uint8_t buf[HELLO_FROM_MAX];
	size_t len;

	for (unsigned i = 0; i < list.count; i++) {
		snprintf(list.entries[i].region, sizeof(list.entries[i].region), "%044u", i);
		list.entries[i].size = i;
		list.entries[i].durability = RPMA_DURABILITY_FILE;
		list.entries[i].content.state = HELLO_CONTENT_WHOLE;
		list.entries[i].content.length = list.entries[i].content.time_ns = i;
		list.entries[i].content.digest[0] = (uint8_t)i;
	}
	len = hello_list_encode(&list, buf);
	assert_int_equal(len, HELLO_FROM_MAX);
	assert_true(hello_list_decode(buf, len, &back));
	assert_memory_equal(&back, &list, sizeof(back));
	assert_false(hello_list_decode(buf, len - 1, &back));
	buf[5] = HELLO_ENTRY_MAX + 1;
	assert_false(hello_list_decode(buf, len, &back));
	assert_int_equal(back.count, 0);
}

static struct hello_counts make_counts(void)
{
	struct hello_counts counts = {
		.clients = 1, .served = 2, .refused = UINT64_MAX, .count = HELLO_ENTRY_MAX};

	for (unsigned i = 0; i < HELLO_VALUES; i++)
		counts.values[i] = i + 1;
	for (unsigned i = 0; i < counts.count; i++) {
		struct hello_region_counts *r = &counts.regions[i];

		snprintf(r->region, sizeof(r->region), "%044u", i);
		r->size = r->avail = r->room = i;
		r->durability = RPMA_DURABILITY_FILE;
		r->status = HELLO_FILE_REMOVED;
	}
	return counts;
}

static void the_most_counts_fit_and_come_back_as_they_went(void **state)
{
	static uint8_t buf[HELLO_FROM_MAX];
	struct hello_counts counts = make_counts(), back;
	size_t len = hello_counts_encode(&counts, buf), cut = len;

	assert_true(len < HELLO_FROM_MAX);
	assert_true(hello_counts_decode(buf, len, &back));
	assert_memory_equal(&back, &counts, sizeof(back));
	assert_false(hello_counts_decode(buf, len + 1, &back));
	while (cut--) {
		assert_false(hello_counts_decode(buf, cut, &back));
		assert_int_equal(back.count, 0);
	}
	buf[len - 17] = HELLO_STATUS_COUNT; /* status of the last region */
	assert_false(hello_counts_decode(buf, len, &back));
	assert_int_equal(hello_ask_counts_encode(buf), 5);
	assert_true(hello_ask_counts_decode(buf, 5));
	assert_false(hello_ask_decode(buf, 5));
	assert_false(hello_ask_counts_decode(buf, 6));
}

/* A server of another release has more counters, or fewer. */
static void counts_of_another_release_are_understood(void **state)
{
	static uint8_t buf[HELLO_FROM_MAX];
	struct hello_counts counts = {.clients = 7, .values = {1, 2}}, back;
	size_t at = 5 + 3 * 8, len = hello_counts_encode(&counts, buf);

	memmove(buf + at + 1 + 8 * (HELLO_VALUES + 2), buf + at + 1 + 8 * HELLO_VALUES, 1);
	buf[at] = HELLO_VALUES + 2;
	assert_true(hello_counts_decode(buf, len + 16, &back));
	assert_int_equal(back.values[1], 2);
	buf[at] = 1;
	buf[at + 9] = 0;
	assert_true(hello_counts_decode(buf, at + 10, &back));
	assert_int_equal(back.values[0], 1);
	assert_int_equal(back.values[1], 0);
	buf[at] = HELLO_VALUES_MAX + 1;
	assert_false(hello_counts_decode(buf, len, &back));
	assert_string_equal(hello_value_name(HELLO_VALUES - 1), "writeback_failures");
	assert_null(hello_value_name(HELLO_VALUES));
}

static void a_question_and_its_verdict_come_back_as_they_went(void **state)
{
	uint8_t buf[HELLO_TO_MAX + 1] = {0};
	enum hello_status back;
	size_t len = hello_confirm_encode(buf);

	assert_true(hello_confirm_decode(buf, len));
	assert_false(hello_confirm_decode(buf, len - 1));
	assert_false(hello_confirm_decode(buf, len + 1));
	assert_false(hello_ask_decode(buf, len));
	for (int status = HELLO_OK; status < HELLO_STATUS_COUNT; status++) {
		len = hello_verdict_encode((enum hello_status)status, buf);
		assert_int_equal(len, HELLO_VERDICT);
		assert_true(hello_verdict_decode(buf, len, &back));
		assert_int_equal(back, status);
	}
}

static void an_announcement_and_its_answer_come_back_as_they_went(void **state)
{
	static const struct hello_begin begin = {
		true, 7, HELLO_LENGTH_UNKNOWN, 0x1122334455667788, {3, UINT64_MAX}};
	struct hello_begin back;
	uint8_t buf[HELLO_TO_MAX + 1] = {0};
	size_t len = hello_begin_encode(&begin, buf);

	assert_true(hello_begin_decode(buf, len, &back));
	assert_memory_equal(&back, &begin, sizeof(back));
	assert_false(hello_begin_decode(buf, len + 1, &back));
	buf[5] = 2;
	assert_false(hello_begin_decode(buf, len, &back));
	while (len--)
		assert_false(hello_begin_decode(buf, len, &back));
}

/* A client may write only after a complete answer. */
static void an_answer_to_it_comes_back_as_it_went(void **state)
{
	static const struct hello_begun begun = {HELLO_OK, {0x1122334455667788, 9}, 77};
	struct hello_begun back;
	uint8_t buf[HELLO_BEGUN + 1] = {0};
	enum hello_status status;
	size_t len = hello_begun_encode(&begun, buf);

	assert_int_equal(len, HELLO_BEGUN);
	assert_true(hello_begun_decode(buf, len, &back));
	assert_int_equal(back.status, HELLO_OK);
	assert_memory_equal(&back.claim, &begun.claim, sizeof(back.claim));
	assert_int_equal(back.made_ns, begun.made_ns);
	assert_false(hello_verdict_decode(buf, len, &status));
	assert_int_equal(status, HELLO_FILE_UNKNOWN);
	for (size_t cut = 0; cut <= len + 1; cut++) {
		back.status = HELLO_OK;
		assert_int_equal(hello_begun_decode(buf, cut, &back), cut == len);
		assert_int_equal(back.status, cut == len ? HELLO_OK : HELLO_FILE_UNKNOWN);
	}
	buf[5] = HELLO_STATUS_COUNT;
	assert_false(hello_begun_decode(buf, len, &back));
	assert_int_equal(back.status, HELLO_FILE_UNKNOWN);
}

static void the_end_of_a_file_comes_back_as_it_went(void **state)
{
	static struct hello_content content = {HELLO_CONTENT_WHOLE, 12345, 67890, {1, 2, 3}};
	struct hello_content back;
	uint8_t buf[HELLO_TO_MAX + 1] = {0};
	size_t len = hello_end_encode(&content, buf);

	assert_true(hello_end_decode(buf, len, &back));
	assert_memory_equal(&back, &content, sizeof(back));
	assert_false(hello_end_decode(buf, len + 1, &back));
	while (len--)
		assert_false(hello_end_decode(buf, len, &back));
	content.state = HELLO_CONTENT_PARTIAL; /* with a partial content the put is not finished */
	assert_false(hello_end_decode(buf, hello_end_encode(&content, buf), &back));
	buf[5] = HELLO_CONTENT_WHOLE + 1;
	assert_false(hello_end_decode(buf, sizeof(buf), &back));
}

/* A put succeeds only after a complete verdict. */
static void what_is_no_verdict_is_no_good_one(void **state)
{
	uint8_t buf[HELLO_VERDICT + 1] = {0};
	enum hello_status back;
	size_t len = hello_verdict_encode(HELLO_OK, buf);

	for (size_t cut = 0; cut <= len + 1; cut++) {
		back = HELLO_OK;
		assert_int_equal(hello_verdict_decode(buf, cut, &back), cut == len);
		assert_int_equal(back, cut == len ? HELLO_OK : HELLO_FILE_UNKNOWN);
	}
	buf[HELLO_VERDICT - 1] = HELLO_STATUS_COUNT;
	assert_false(hello_verdict_decode(buf, len, &back));
	assert_int_equal(back, HELLO_FILE_UNKNOWN);
}

static struct hello_exchange make_exchange(void)
{
	struct hello_exchange exchange = {.request = request};

	memset(exchange.client_nonce, 1, HELLO_NONCE);
	memset(exchange.server_nonce, 2, HELLO_NONCE);
	return exchange;
}

static const struct secret secret = {.key = {7}}, other_secret = {.key = {8}};

static void assert_client_differs(const struct secret *key, const struct hello_exchange *changed)
{
	struct hello_exchange exchange = make_exchange();
	uint8_t mac[HELLO_MAC], other[HELLO_MAC];

	proof_of_client(&secret, &exchange, mac);
	proof_of_client(key, changed, other);
	assert_false(mac_is_equal(mac, other));
}

static void a_proof_is_for_one_secret_one_exchange_and_one_request(void **state)
{
	struct hello_exchange exchange = make_exchange();
	uint8_t mac[HELLO_MAC], again[HELLO_MAC];

	proof_of_client(&secret, &exchange, mac);
	proof_of_client(&secret, &exchange, again);
	assert_true(mac_is_equal(mac, again));
	assert_client_differs(&other_secret, &exchange);
	exchange.client_nonce[31]++;
	assert_client_differs(&secret, &exchange);
	exchange = make_exchange();
	exchange.server_nonce[31]++;
	assert_client_differs(&secret, &exchange);
	exchange = make_exchange();
	exchange.request.access = HELLO_READ;
	assert_client_differs(&secret, &exchange);
	exchange = make_exchange();
	exchange.request.region[3] = '2';
	assert_client_differs(&secret, &exchange);
}

static void a_servers_proof_covers_what_it_grants(void **state)
{
	struct hello_exchange exchange = make_exchange();
	struct hello_reply reply = make_reply(HELLO_OK);
	uint8_t client[HELLO_MAC], mac[HELLO_MAC], other[HELLO_MAC];

	proof_of_client(&secret, &exchange, client);
	proof_of_server(&secret, &exchange, &reply, mac);
	assert_false(mac_is_equal(client, mac));
	reply.mr[24]++;
	proof_of_server(&secret, &exchange, &reply, other);
	assert_false(mac_is_equal(other, mac));
	reply = make_reply(HELLO_NO_REGION);
	proof_of_server(&secret, &exchange, &reply, other);
	assert_false(mac_is_equal(other, mac));
}

/* Earlier versions make the same proofs, so this checksum over both proofs must never change. */
static void the_proofs_stay_the_same(void **state)
{
	struct hello_exchange exchange = make_exchange();
	struct hello_reply reply = make_reply(HELLO_OK);
	uint8_t mac[HELLO_MAC];
	uint32_t crc = CRC32C_INIT;

	proof_of_client(&secret, &exchange, mac);
	crc = crc32c_update(crc, mac, sizeof(mac));
	proof_of_server(&secret, &exchange, &reply, mac);
	crc = crc32c_update(crc, mac, sizeof(mac));
	assert_int_equal(crc32c_final(crc), 0xe97b50bd);
}

static void nonces_differ(void **state)
{
	uint8_t a[HELLO_NONCE], b[HELLO_NONCE];

	secret_nonce(a);
	secret_nonce(b);
	assert_memory_not_equal(a, b, HELLO_NONCE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_demand_for_a_proof_carries_the_nonce),
		cmocka_unit_test(a_message_comes_back_as_it_went),
		cmocka_unit_test(the_longest_list_fits_and_a_longer_one_is_refused),
		cmocka_unit_test(the_most_counts_fit_and_come_back_as_they_went),
		cmocka_unit_test(counts_of_another_release_are_understood),
		cmocka_unit_test(a_question_and_its_verdict_come_back_as_they_went),
		cmocka_unit_test(an_announcement_and_its_answer_come_back_as_they_went),
		cmocka_unit_test(an_answer_to_it_comes_back_as_it_went),
		cmocka_unit_test(the_end_of_a_file_comes_back_as_it_went),
		cmocka_unit_test(what_is_no_verdict_is_no_good_one),
		cmocka_unit_test(a_proof_is_for_one_secret_one_exchange_and_one_request),
		cmocka_unit_test(a_servers_proof_covers_what_it_grants),
		cmocka_unit_test(the_proofs_stay_the_same),
		cmocka_unit_test(nonces_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
