/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection between a primary and a member's daemon begins, and the proofs. */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "mirror/wire/proof.h"

static struct greeting sample(void)
{
	struct greeting g = {.epoch = {7, 0x1122334455667788},
			     .copy_id = 0x99,
			     .from = 1,
			     .to = 2,
			     .kind = GREETING_LANE};

	for (unsigned i = 0; i < sizeof(g.uuid.bytes); i++)
		g.uuid.bytes[i] = (uint8_t)i;
	return g;
}

static void a_greeting_has_its_documented_bytes(void **state)
{
	static const uint8_t want[GREETING_SIZE] = {
		'R',  'M',  'I',  'M',  1,    2,    1,    2,    0,    1, 2, 3, 4, 5, 6, 7,
		8,    9,    10,   11,   12,   13,   14,   15,   7,    0, 0, 0, 0, 0, 0, 0,
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x99, 0, 0, 0, 0, 0, 0, 0};
	struct greeting g = sample();
	uint8_t buf[GREETING_SIZE];

	assert_int_equal(greeting_encode(&g, buf), GREETING_SIZE);
	assert_memory_equal(buf, want, GREETING_SIZE);
}

static void a_greeting_comes_back_also_when_it_was_padded(void **state)
{
	struct greeting g = sample(), got;
	uint8_t buf[92] = {0};

	greeting_encode(&g, buf);
	assert_int_equal(greeting_decode(buf, sizeof(buf), &got), 0);
	assert_memory_equal(&got, &g, sizeof(g));
	buf[91] = 1;
	assert_int_equal(greeting_decode(buf, sizeof(buf), &got), -EPROTO);
}

static void every_shorter_greeting_is_refused(void **state)
{
	struct greeting g = sample(), got;
	uint8_t buf[GREETING_SIZE];

	greeting_encode(&g, buf);
	for (size_t len = 0; len < GREETING_SIZE; len++)
		assert_int_equal(greeting_decode(buf, len, &got), -EPROTO);
}

static void values_that_cannot_be_are_refused(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
		int rc;
	} cases[] = {{0, 'X', -EPROTO}, {4, 2, -EPROTONOSUPPORT},
		     {5, 0, -EPROTO},   {5, GREETING_KIND_END, -EPROTO},
		     {6, 8, -EPROTO},   {6, MIRROR_NOBODY, -EPROTO},
		     {7, 8, -EPROTO},   {7, MIRROR_NOBODY, -EPROTO},
		     {24, 0, -EPROTO},  {5, GREETING_OBSERVE, -EPROTO}};
	struct greeting g = sample(), got;
	uint8_t buf[GREETING_SIZE];

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		greeting_encode(&g, buf);
		buf[cases[i].at] = cases[i].value;
		assert_int_equal(greeting_decode(buf, sizeof(buf), &got), cases[i].rc);
	}
}

static void a_tool_observes_without_an_epoch(void **state)
{
	struct greeting g = {.from = MIRROR_NOBODY, .kind = GREETING_OBSERVE}, got;
	uint8_t buf[GREETING_SIZE];

	greeting_encode(&g, buf);
	assert_int_equal(greeting_decode(buf, sizeof(buf), &got), 0);
	assert_int_equal(got.from, MIRROR_NOBODY);
}

static void a_reply_comes_back_as_it_went(void **state)
{
	struct greeting_reply reply = {.status = GREETING_EPOCH,
				       .has_secret = true,
				       .known = {9, 8}},
			      got;
	uint8_t buf[GREETING_REPLY + 3] = {0};

	proof_nonce(reply.nonce);
	assert_int_equal(greeting_reply_encode(&reply, buf), GREETING_REPLY);
	assert_int_equal(greeting_reply_decode(buf, sizeof(buf), &got), 0);
	assert_memory_equal(&got, &reply, sizeof(got));
	for (size_t len = 0; len < GREETING_REPLY; len++)
		assert_int_equal(greeting_reply_decode(buf, len, &got), -EPROTO);
	buf[5] = GREETING_STATUS_END;
	assert_int_equal(greeting_reply_decode(buf, sizeof(buf), &got), -EPROTO);
}

static void every_status_has_a_text_of_its_own(void **state)
{
	for (unsigned i = 0; i <= GREETING_STATUS_END; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(greeting_status_2str(i), greeting_status_2str(j));
}

static void a_proof_depends_on_all_that_was_said(void **state)
{
	struct proof_exchange exchange = {.greeting = sample(), .reply = {.has_secret = true}};
	struct message_grant grant = {.size = 4096, .data = {.len = 1}};
	uint8_t key[PROOF_KEY] = {1}, mine[MESSAGE_MAC], theirs[MESSAGE_MAC], other[MESSAGE_MAC];
	struct proof_exchange changed;

	proof_make(key, &exchange, mine);
	proof_make(key, &exchange, other);
	assert_true(proof_is_equal(mine, other));
	proof_make_grant(key, &exchange, &grant, theirs);
	assert_false(proof_is_equal(mine, theirs));

	changed = exchange;
	changed.greeting.epoch.number++;
	proof_make(key, &changed, other);
	assert_false(proof_is_equal(mine, other));
	changed = exchange;
	changed.greeting.kind = GREETING_CONTROL;
	proof_make(key, &changed, other);
	assert_false(proof_is_equal(mine, other));
	changed = exchange;
	changed.reply.nonce[31] ^= 1;
	proof_make(key, &changed, other);
	assert_false(proof_is_equal(mine, other));
	changed = exchange;
	changed.nonce[0] ^= 1;
	proof_make(key, &changed, other);
	assert_false(proof_is_equal(mine, other));
	key[31] ^= 1;
	proof_make(key, &exchange, other);
	assert_false(proof_is_equal(mine, other));
}

static void a_proof_of_a_grant_covers_its_descriptors_but_not_itself(void **state)
{
	struct proof_exchange exchange = {.greeting = sample()};
	struct message_grant grant = {.size = 4096, .data = {.len = 1}};
	uint8_t key[PROOF_KEY] = {1}, a[MESSAGE_MAC], b[MESSAGE_MAC];

	proof_make_grant(key, &exchange, &grant, a);
	memcpy(grant.mac, a, MESSAGE_MAC);
	proof_make_grant(key, &exchange, &grant, b);
	assert_true(proof_is_equal(a, b));
	grant.data.bytes[0] = 1;
	proof_make_grant(key, &exchange, &grant, b);
	assert_false(proof_is_equal(a, b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_greeting_has_its_documented_bytes),
		cmocka_unit_test(a_greeting_comes_back_also_when_it_was_padded),
		cmocka_unit_test(every_shorter_greeting_is_refused),
		cmocka_unit_test(values_that_cannot_be_are_refused),
		cmocka_unit_test(a_tool_observes_without_an_epoch),
		cmocka_unit_test(a_reply_comes_back_as_it_went),
		cmocka_unit_test(every_status_has_a_text_of_its_own),
		cmocka_unit_test(a_proof_depends_on_all_that_was_said),
		cmocka_unit_test(a_proof_of_a_grant_covers_its_descriptors_but_not_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
