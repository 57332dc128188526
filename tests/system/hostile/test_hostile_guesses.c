/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostile_guesses.c -- a peer that guesses STags on many connections at the same time. The
 * target must limit the rate of the guesses. No guess must find a region, and no other peer must
 * have to wait.
 *
 * The attacker is 127.0.0.2; all other peers are 127.0.0.1.
 */
#include "system/lib/check.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "system/lib/client.h"
#include "system/lib/gauge.h"
#include "system/lib/rawpeer.h"
#include "system/lib/remote.h"

#define ATTACKER  "127.0.0.2"
#define PARALLEL  20
#define BURST     100 /* RATE_LIMIT_BURST */
#define RATE      10  /* SOFTRNIC_VIOLATIONS_PER_S */
#define ATTACK_MS 4000
/* connections that send a guess when the permitted burst is already used up: such guesses are
 * subtracted from later permitted guesses */
#define RESERVES      4
#define SIZE          65536
#define HONEST_MAX_MS (SYSTEM_SANITIZED ? 10000 : 2000)

static struct remote target;
static struct client honest;
static struct raw slot[PARALLEL], reserve[RESERVES], settled;
/* true: the reply has arrived on this connection, and the guess has been sent */
static bool connected[PARALLEL];
static int parallel;
static unsigned long guesses, answers;
static uint64_t seed;

static uint64_t now_ms(void)
{
	return clock_now_ns() / NSEC_PER_MS;
}

static void start(const char *rate)
{
	char env[64];

	snprintf(env, sizeof(env), "SOFTRNIC_VIOLATIONS_PER_S=%s", rate);
	remote_must_start(&target, ((const char *[]){env, NULL}), "anon:65536:0xff");
	OK(client_open(&honest, 4096));
	guesses = answers = 0;
}

static void stop(void)
{
	client_close(&honest);
	assert_int_equal(proc_finish(&target.proc), 0);
}

static uint32_t next_guess(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)(seed * 0x2545f4914f6cdd1dull >> 32);
}

static void start_handshake(int i)
{
	assert_int_equal(raw_dial_from(&slot[i], ATTACKER, target.port), 0);
	assert_int_equal(raw_send_request(&slot[i], RAW_PLAIN), 0);
	connected[i] = false;
}

/* Send a guess: a correct address with a wrong STag. */
static void guess(struct raw *r)
{
	static const uint8_t mark[8] = {0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb, 0xbb};

	assert_int_equal(raw_write(r, r->region[0].stag ^ (next_guess() | 1), r->region[0].addr,
				   mark, sizeof(mark)),
			 0);
	guesses++;
}

static void learn(struct raw *r)
{
	int error = raw_expect_terminate(r, NULL);

	if (error != TERM_DDP_INVALID_STAG)
		fail_msg("a guess is answered by %#x", (unsigned)error);
	raw_close(r);
	answers++;
}

/* Handle the connections that are ready, without a wait. */
static void attack_step(void)
{
	struct pollfd p[PARALLEL];

	for (int i = 0; i < parallel; i++)
		p[i] = (struct pollfd){.fd = slot[i].fd, .events = POLLIN};
	if (poll(p, (nfds_t)parallel, 10) <= 0)
		return;
	for (int i = 0; i < parallel; i++) {
		if (!p[i].revents)
			continue;
		if (connected[i]) {
			learn(&slot[i]);
			start_handshake(i);
		} else {
			assert_int_equal(raw_take_reply(&slot[i]), 0);
			guess(&slot[i]);
			connected[i] = true;
		}
	}
}

static void attack_begin(int n)
{
	parallel = n;
	for (int i = 0; i < n; i++)
		start_handshake(i);
}

static void connect_from_there(struct raw *r)
{
	assert_int_equal(raw_dial_from(r, ATTACKER, target.port), 0);
	assert_int_equal(raw_send_request(r, RAW_PLAIN), 0);
	assert_int_equal(raw_take_reply(r), 0);
}

/* Guess until new connections have to wait: the address has then sent RESERVES guesses more than
 * permitted. */
static void attack_until_held(void)
{
	for (int i = 0; i < RESERVES; i++)
		connect_from_there(&reserve[i]);
	attack_begin(RESERVES);
	while (answers < BURST)
		attack_step();
	for (int i = 0; i < RESERVES; i++) {
		guess(&reserve[i]);
		learn(&reserve[i]);
	}
}

static void attack_end(void)
{
	for (int i = 0; i < parallel; i++)
		raw_close(&slot[i]);
}

static void connect_honestly(void)
{
	uint64_t begin = now_ms();

	OK(client_connect(&honest, target.port, NULL));
	OK(client_read(&honest, 0, 0, 64, NULL));
	client_disconnect(&honest);
	if (now_ms() - begin > HONEST_MAX_MS)
		fail_msg("an honest connection took %d ms", (int)(now_ms() - begin));
}

/* A connection from the attacker's address that was made before the guesses still works. */
static void read_from_the_attackers_address(void)
{
	uint64_t begin = now_ms();
	const uint8_t *payload;
	struct ddp_hdr hdr;

	assert_int_equal(raw_read(&settled, settled.region[0].stag, settled.region[0].addr, 64), 0);
	assert_int_equal(raw_expect(&settled, RDMAP_READ_RESP, &hdr, &payload), 64);
	assert_true(now_ms() - begin <= HONEST_MAX_MS);
}

static void expect_nothing_was_found(void)
{
	for (size_t at = 0; at < SIZE; at += 4096)
		assert_string_equal(proc_ask(&target.proc, "peek 0 %zu 16", at),
				    "00000000000000000000000000000000");
}

static void guesses_are_limited_and_other_peers_do_not_wait(void **state)
{
	uint64_t begin, allowed;
	int visits = 0;

	start("10");
	connect_from_there(&settled);
	begin = now_ms();
	attack_begin(PARALLEL);
	while (now_ms() - begin < ATTACK_MS || guesses <= BURST) {
		attack_step();
		if (now_ms() - begin < (uint64_t)visits * 50)
			continue;
		read_from_the_attackers_address();
		connect_honestly();
		visits++;
	}
	/* The target cannot delay guesses that arrive at the same time, but counts them later. */
	allowed = BURST + PARALLEL + (now_ms() - begin) * RATE / 1000 + 1;
	print_message("%lu guesses in %d ms, %d honest visits\n", guesses, (int)(now_ms() - begin),
		      visits);
	assert_true(guesses <= allowed);
	attack_end();
	expect_nothing_was_found();
	raw_close(&settled);
	stop();
}

/*
 * A delayed peer must finally be able to connect, for instance after a bug of its program is fixed.
 */
static void a_delayed_peer_connects_later(void **state)
{
	uint64_t begin = now_ms();

	start("2");
	attack_until_held();
	attack_end();
	assert_int_equal(raw_dial_from(&settled, ATTACKER, target.port), 0);
	assert_int_equal(raw_send_request(&settled, RAW_PLAIN), 0);
	connect_honestly();
	assert_int_equal(raw_take_reply(&settled), 0);
	assert_true(now_ms() - begin >= RESERVES * 1000 / 2);
	read_from_the_attackers_address();
	raw_close(&settled);
	stop();
}

static void expect_nothing_but_the_end_at_last(struct raw *r)
{
	uint8_t bytes[512];
	int n;

	while ((n = raw_recv(r, bytes, sizeof(bytes), RAW_WAIT_MS)) > 0)
		;
	assert_true(n == 0 || n == -ESHUTDOWN);
}

/* Deleting the endpoint also closes the descriptors of delayed connections; a leak checker checks
 * the rest. */
static void an_endpoint_is_deleted_while_peers_are_delayed(void **state)
{
	start("2");
	attack_until_held();
	connect_honestly();
	stop();
	for (int i = 0; i < parallel; i++) {
		expect_nothing_but_the_end_at_last(&slot[i]);
		raw_close(&slot[i]);
	}
}

/* More connections wait than an endpoint delays. The oldest connection is closed, and the process
 * continues to work. */
static void delayed_connections_are_bounded(void **state)
{
	enum { CROWD = 300, HELD = 256 };
	static struct raw crowd[CROWD];
	int ended = 0;

	start("2");
	attack_until_held();
	attack_end();
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(raw_dial_from(&crowd[i], ATTACKER, target.port), 0);
	connect_honestly();
	for (int i = 0; i < CROWD - HELD; i++)
		ended += raw_expect_end(&crowd[i], RAW_WAIT_MS) == 0;
	assert_int_equal(ended, CROWD - HELD);
	connect_honestly();
	for (int i = 0; i < CROWD; i++)
		raw_close(&crowd[i]);
	stop();
}

/* For comparison, this test prints the number of guesses without the limit. */
static void without_the_limit_guesses_are_many(void **state)
{
	uint64_t begin;

	start("0");
	begin = now_ms();
	attack_begin(PARALLEL);
	while (guesses < 5 * BURST)
		attack_step();
	print_message("%lu guesses in %d ms without a limit\n", guesses, (int)(now_ms() - begin));
	assert_true((now_ms() - begin) * RATE / 1000 < guesses - BURST - PARALLEL);
	attack_end();
	expect_nothing_was_found();
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(guesses_are_limited_and_other_peers_do_not_wait),
		cmocka_unit_test(a_delayed_peer_connects_later),
		cmocka_unit_test(an_endpoint_is_deleted_while_peers_are_delayed),
		cmocka_unit_test(delayed_connections_are_bounded),
		cmocka_unit_test(without_the_limit_guesses_are_many),
	};

	gauge_raise_nofile();
	seed = env_or("SYSTEM_SEED", (unsigned)time(NULL));
	printf("SYSTEM_SEED=%llu\n", (unsigned long long)seed);
	seed = (seed + 1) * 0x9e3779b97f4a7c15ull;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
