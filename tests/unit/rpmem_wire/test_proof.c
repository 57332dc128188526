/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct sessions (rpma://, without ssh): the proof of each end covers all values that the ends
 * exchanged, and each session has its own keys. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "rpmem/wire/frame.h"
#include "rpmem/wire/lane.h"
#include "rpmem/wire/proof.h"

static const struct secret ours = {{1, 2, 3}}, theirs = {{1, 2, 4}};

static struct wire_exchange sample(void)
{
	struct wire_exchange x = {.greeting = {.flags = WIRE_GREETING_PROVE}};

	memset(x.greeting.nonce, 0x33, WIRE_NONCE);
	memset(x.nonce, 0x44, WIRE_NONCE);
	return x;
}

static bool same_initiator(const struct secret *secret, const struct wire_exchange *x)
{
	struct wire_exchange reference = sample();
	uint8_t a[WIRE_MAC], b[WIRE_MAC];

	wire_prove_initiator(&ours, &reference, a);
	wire_prove_initiator(secret, x, b);
	return mac_is_equal(a, b);
}

static void a_proof_covers_secret_nonces_and_greeting(void **state)
{
	struct wire_exchange x = sample();

	assert_true(same_initiator(&ours, &x));
	assert_false(same_initiator(&theirs, &x));
	x.nonce[31] ^= 1;
	assert_false(same_initiator(&ours, &x));
	x = sample();
	x.greeting.nonce[0] ^= 1;
	assert_false(same_initiator(&ours, &x));
	x = sample();
	x.greeting.flags |= 2;
	assert_false(same_initiator(&ours, &x));
	x = sample();
	strcpy(x.greeting.text, "changed on the way");
	assert_false(same_initiator(&ours, &x));
}

static void the_daemons_proof_covers_what_it_says(void **state)
{
	struct wire_exchange x = sample();
	struct wire_proven good = {0}, bad = {.error = EACCES};
	uint8_t a[WIRE_MAC], b[WIRE_MAC];

	wire_prove_daemon(&ours, &x, &good, a);
	wire_prove_daemon(&ours, &x, &bad, b);
	assert_false(mac_is_equal(a, b));
	memset(good.mac, 0xff, WIRE_MAC); /* the code does not cover its own field */
	wire_prove_daemon(&ours, &x, &good, b);
	assert_true(mac_is_equal(a, b));
	wire_prove_initiator(&ours, &x, b); /* the proof of one end is not valid as the other's */
	assert_false(mac_is_equal(a, b));
}

static void keys_differ_from_each_other_and_between_sessions(void **state)
{
	struct wire_exchange x = sample();
	struct wire_keys a, b;
	uint8_t proof[WIRE_MAC];

	wire_keys_derive(&ours, &x, &a);
	assert_memory_not_equal(&a.to_daemon, &a.to_initiator, WIRE_KEY);
	assert_memory_not_equal(&a.to_daemon, &a.lanes, WIRE_KEY);
	assert_memory_not_equal(&a.to_initiator, &a.lanes, WIRE_KEY);
	wire_prove_initiator(&ours, &x, proof);
	assert_memory_not_equal(&a.to_daemon, proof, WIRE_KEY);
	wire_keys_derive(&ours, &x, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	x.nonce[0] ^= 1;
	wire_keys_derive(&ours, &x, &b);
	assert_memory_not_equal(&a.lanes, &b.lanes, WIRE_KEY);
}

/* Earlier versions make the same codes, so this checksum over all values that depend on a key must
 * never change. */
static void the_codes_stay_the_same(void **state)
{
	static uint8_t buf[WIRE_FRAME_MAX];
	struct wire_exchange x = sample();
	struct wire_proven proven = {.error = EACCES};
	struct wire_lane_reply reply = {.mr_len = 3, .mr = "abc"};
	struct wire_seal seal = {0};
	struct wire_keys keys;
	uint8_t mac[WIRE_MAC];
	uint32_t crc = CRC32C_INIT;

	wire_prove_initiator(&ours, &x, mac);
	crc = crc32c_update(crc, mac, sizeof(mac));
	wire_prove_daemon(&ours, &x, &proven, mac);
	crc = crc32c_update(crc, mac, sizeof(mac));
	wire_keys_derive(&ours, &x, &keys);
	crc = crc32c_update(crc, &keys, sizeof(keys));
	wire_seal_begin(&seal, &keys.to_daemon);
	for (unsigned i = 0; i < 2; i++)
		crc = crc32c_update(crc, buf, wire_frame_encode(&seal, WIRE_GREETING, mac, 9, buf));
	crc = crc32c_update(crc, buf, wire_lane_request_encode(&keys.lanes, 5, 7205, buf));
	crc = crc32c_update(crc, buf, wire_lane_reply_encode(&keys.lanes, 5, 7205, &reply, buf));
	assert_int_equal(crc32c_final(crc), 0x84015511);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_proof_covers_secret_nonces_and_greeting),
		cmocka_unit_test(the_daemons_proof_covers_what_it_says),
		cmocka_unit_test(keys_differ_from_each_other_and_between_sessions),
		cmocka_unit_test(the_codes_stay_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
