/* SPDX-License-Identifier: BSD-3-Clause */
/* How a connection between a primary and a member's daemon begins, and the proofs that both
 * exchange. */
#include "lib/unit.h"

#include <errno.h>
#include <string.h>

#include "base/crc32c.h"
#include "mirror/wire/proof.h"

#define SAID    52 /* lengths of a greeting and of an answer, before the padding */
#define REPLIED 60

static struct greeting sample(void)
{
	struct greeting g = {.versions = version_ours(),
			     .epoch = {7, 0x1122334455667788},
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
		'R', 'M', 'I', 'M', 2,    1,    52,   2,    1,    2,    0,    0,    0,    1, 2, 3,
		4,   5,   6,   7,   8,    9,    10,   11,   12,   13,   14,   15,   7,    0, 0, 0,
		0,   0,   0,   0,   0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x99, 0};
	struct greeting g = sample();
	uint8_t buf[GREETING_SIZE];

	assert_int_equal(greeting_encode(&g, version_newest(), buf), GREETING_SIZE);
	assert_memory_equal(buf, want, GREETING_SIZE);
}

static void a_greeting_comes_back_also_when_it_was_padded(void **state)
{
	struct greeting g = sample(), got;
	uint8_t buf[92] = {0};

	greeting_encode(&g, version_newest(), buf);
	assert_int_equal(greeting_decode(buf, sizeof(buf), &got), 0);
	assert_memory_equal(&got, &g, sizeof(g));
	buf[91] = 1;
	assert_int_equal(greeting_decode(buf, sizeof(buf), &got), -EPROTO);
}

static void every_shorter_greeting_is_refused(void **state)
{
	struct greeting g = sample(), got;
	uint8_t buf[GREETING_SIZE];

	greeting_encode(&g, version_newest(), buf);
	for (size_t len = 0; len < SAID; len++)
		assert_int_equal(greeting_decode(buf, len, &got), -EPROTO);
}

static void values_that_cannot_be_are_refused(void **state)
{
	static const struct {
		unsigned at;
		uint8_t value;
		int rc;
	} cases[] = {{0, 'X', -EPROTO},
		     {4, 0, -EPROTO}, /* the versions: newest and lowest */
		     {5, 0, -EPROTO},
		     {5, 3, -EPROTO},
		     {5, 255, -EPROTO},
		     {6, 0, -EPROTO}, /* length */
		     {6, 51, -EPROTO},
		     {6, 53, -EPROTO},
		     {6, 57, -EPROTO},
		     {6, 255, -EPROTO},
		     {7, 0, -EPROTO}, /* kind */
		     {7, GREETING_KIND_END, -EPROTO},
		     {7, GREETING_OBSERVE, -EPROTO},
		     {8, 8, -EPROTO}, /* the slots from and to */
		     {8, MIRROR_NO_SLOT, -EPROTO},
		     {9, 8, -EPROTO},
		     {9, MIRROR_NO_SLOT, -EPROTO},
		     {10, 1, -EPROTO},
		     {28, 0, -EPROTO}, /* epoch */
		     {55, 1, -EPROTO}};
	struct greeting g = sample(), got;
	uint8_t buf[GREETING_SIZE];

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		greeting_encode(&g, version_newest(), buf);
		buf[cases[i].at] = cases[i].value;
		assert_int_equal(greeting_decode(buf, sizeof(buf), &got), cases[i].rc);
	}
}

/* The greeting of a newer program is longer, but compatible. Only the part that this version
 * defines counts. */
static void a_longer_greeting_of_a_newer_program_is_read_as_far_as_it_is_known(void **state)
{
	struct greeting g = sample(), got;
	uint8_t buf[GREETING_SIZE];

	greeting_encode(&g, version_newest(), buf);
	buf[4] = (uint8_t)(version_newest() + 1);
	buf[6] = GREETING_SIZE;
	memset(buf + SAID, 0x5a, GREETING_SIZE - SAID);
	assert_int_equal(greeting_decode(buf, sizeof(buf), &got), 0);
	assert_int_equal(got.versions.newest, version_newest() + 1);
	assert_int_equal(version_agree(got.versions, version_ours()), version_newest());
	got.versions = g.versions;
	assert_memory_equal(&got, &g, sizeof(g));
	buf[4] = (uint8_t)version_newest(); /* a program of this version must not send more bytes */
	assert_int_equal(greeting_decode(buf, sizeof(buf), &got), -EPROTO);
}

/* Without a common version only the versions in the greeting have a meaning. */
static void of_programs_without_a_version_in_common_only_the_versions_are_known(void **state)
{
	static const struct mirror_versions others[] = {{3, 3}, {255, 3}, {255, 255}};
	struct greeting g = sample(), got;
	struct greeting_reply reply = {.status = GREETING_BAD_VERSION}, answer;
	uint8_t buf[GREETING_REPLY];

	for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
		g.versions = reply.versions = others[i];
		greeting_encode(&g, version_newest(), buf);
		buf[6] = 255;
		assert_int_equal(greeting_decode(buf, GREETING_SIZE, &got), -EPROTONOSUPPORT);
		assert_memory_equal(&got.versions, &others[i], sizeof(others[i]));
		greeting_reply_encode(&reply, version_newest(), buf);
		assert_int_equal(greeting_reply_decode(buf, sizeof(buf), &answer),
				 -EPROTONOSUPPORT);
		assert_memory_equal(&answer.versions, &others[i], sizeof(others[i]));
		assert_int_equal(answer.status, GREETING_BAD_VERSION);
	}
}

static void a_tool_observes_without_an_epoch(void **state)
{
	struct greeting g = {.from = MIRROR_NO_SLOT, .kind = GREETING_OBSERVE}, got;
	uint8_t buf[GREETING_SIZE];

	greeting_encode(&g, version_newest(), buf);
	assert_int_equal(greeting_decode(buf, sizeof(buf), &got), 0);
	assert_int_equal(got.from, MIRROR_NO_SLOT);
}

static void a_reply_comes_back_as_it_went(void **state)
{
	struct greeting_reply reply = {.versions = version_ours(),
				       .status = GREETING_EPOCH,
				       .has_secret = true,
				       .known = {9, 8}},
			      got;
	uint8_t buf[GREETING_REPLY + 3] = {0};

	proof_nonce(reply.nonce);
	assert_int_equal(greeting_reply_encode(&reply, version_newest(), buf), GREETING_REPLY);
	assert_int_equal(greeting_reply_decode(buf, sizeof(buf), &got), 0);
	assert_memory_equal(&got, &reply, sizeof(got));
	for (size_t len = 0; len < REPLIED; len++)
		assert_int_equal(greeting_reply_decode(buf, len, &got), -EPROTO);
	buf[7] = GREETING_STATUS_END;
	assert_int_equal(greeting_reply_decode(buf, sizeof(buf), &got), -EPROTO);
}

static void every_status_has_a_text_of_its_own(void **state)
{
	for (unsigned i = 0; i <= GREETING_STATUS_END; i++)
		for (unsigned j = 0; j < i; j++)
			assert_string_not_equal(greeting_status_2str(i), greeting_status_2str(j));
}

static void a_proof_depends_on_the_whole_exchange(void **state)
{
	struct proof_exchange exchange = {
		.version = 1, .greeting = sample(), .reply = {.has_secret = true}};
	struct message_grant grant = {.size = 4096, .data = {.len = 1}};
	uint8_t key[PROOF_KEY] = {1}, mine[MESSAGE_MAC], theirs[MESSAGE_MAC], other[MESSAGE_MAC];
	struct proof_exchange changed;

	proof_make(key, &exchange, mine);
	proof_make(key, &exchange, other);
	assert_true(mac_is_equal(mine, other));
	proof_make_grant(key, &exchange, &grant, theirs);
	assert_false(mac_is_equal(mine, theirs));

	changed = exchange;
	changed.greeting.epoch.number++;
	proof_make(key, &changed, other);
	assert_false(mac_is_equal(mine, other));
	changed = exchange;
	/* an attacker between the two cannot lower the version */
	changed.greeting.versions.newest++;
	proof_make(key, &changed, other);
	assert_false(mac_is_equal(mine, other));
	changed = exchange;
	changed.greeting.kind = GREETING_CONTROL;
	proof_make(key, &changed, other);
	assert_false(mac_is_equal(mine, other));
	changed = exchange;
	changed.reply.nonce[31] ^= 1;
	proof_make(key, &changed, other);
	assert_false(mac_is_equal(mine, other));
	changed = exchange;
	changed.nonce[0] ^= 1;
	proof_make(key, &changed, other);
	assert_false(mac_is_equal(mine, other));
	key[31] ^= 1;
	proof_make(key, &exchange, other);
	assert_false(mac_is_equal(mine, other));
}

static void a_proof_of_a_grant_covers_its_descriptors_but_not_itself(void **state)
{
	struct proof_exchange exchange = {.version = 1, .greeting = sample()};
	struct message_grant grant = {.size = 4096, .data = {.len = 1}};
	uint8_t key[PROOF_KEY] = {1}, a[MESSAGE_MAC], b[MESSAGE_MAC];

	proof_make_grant(key, &exchange, &grant, a);
	memcpy(grant.mac, a, MESSAGE_MAC);
	proof_make_grant(key, &exchange, &grant, b);
	assert_true(mac_is_equal(a, b));
	grant.data.bytes[0] = 1;
	proof_make_grant(key, &exchange, &grant, b);
	assert_false(mac_is_equal(a, b));
}

/* Earlier versions make the same proofs, so this checksum over both proofs must never change. */
static void the_proofs_stay_the_same(void **state)
{
	struct proof_exchange exchange = {
		.version = 1, .greeting = sample(), .reply = {.has_secret = true}, .nonce = {3}};
	struct message_grant grant = {.size = 4096, .data = {.len = 1}};
	uint8_t key[PROOF_KEY] = {1}, mac[MESSAGE_MAC];
	uint32_t crc = CRC32C_INIT;

	exchange.greeting.versions.lowest = exchange.greeting.versions.newest = 1;
	proof_make(key, &exchange, mac);
	crc = crc32c_update(crc, mac, sizeof(mac));
	proof_make_grant(key, &exchange, &grant, mac);
	crc = crc32c_update(crc, mac, sizeof(mac));
	assert_int_equal(crc32c_final(crc), 0x1f643919);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_greeting_has_its_documented_bytes),
		cmocka_unit_test(a_greeting_comes_back_also_when_it_was_padded),
		cmocka_unit_test(every_shorter_greeting_is_refused),
		cmocka_unit_test(values_that_cannot_be_are_refused),
		cmocka_unit_test(
			a_longer_greeting_of_a_newer_program_is_read_as_far_as_it_is_known),
		cmocka_unit_test(
			of_programs_without_a_version_in_common_only_the_versions_are_known),
		cmocka_unit_test(a_tool_observes_without_an_epoch),
		cmocka_unit_test(a_reply_comes_back_as_it_went),
		cmocka_unit_test(every_status_has_a_text_of_its_own),
		cmocka_unit_test(a_proof_depends_on_the_whole_exchange),
		cmocka_unit_test(a_proof_of_a_grant_covers_its_descriptors_but_not_itself),
		cmocka_unit_test(the_proofs_stay_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
