/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostile_streams.c -- peers that are connected and then misbehave: with garbage, floods or
 * silence. The target must close their connections, and the target's memory must stay bounded.
 */
#include "system/lib/check.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#include "lib/header_edges.h"
#include "system/lib/client.h"
#include "system/lib/gauge.h"
#include "system/lib/rawpeer.h"
#include "system/lib/remote.h"

#define SIZE     (4 * MIB)
#define CROWD    40
#define GARBAGES 100
#define FLOODS   4
/* Bound of the memory for one peer: parked messages (256 KiB), a receive buffer, and the
 * allocator's rounding. */
#define PEER_KIB 512

static struct remote target;
static struct client bystander;
static struct raw peer, crowd[CROWD];
static uint64_t seed;

static int start(void **state)
{
	/* With this limit a late reader still gets the Terminate, even if the test is slow. */
	return remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:4194304:0xff", NULL},
			    (const char *[]){"SOFTRNIC_DRAIN_MS=20000", NULL}) ||
	       strcmp(proc_ask(&target.proc, "fill 0 0"), "ok") != 0 ||
	       client_open(&bystander, 4096) || client_connect(&bystander, target.port, NULL);
}

static int stop(void **state)
{
	client_close(&bystander);
	return proc_finish(&target.proc);
}

static uint64_t next_random(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dull;
}

static void bystander_goes_on(void)
{
	OK(client_write(&bystander, 0, 0, 64, NULL));
	OK(client_read(&bystander, 0, 0, 64, NULL));
	OK(client_echo(&bystander, 32));
}

static long target_kib(void)
{
	return gauge_rss_anon_kib(target.proc.pid);
}

/* The target's peers are gone, so it must keep almost no memory for them. */
static void expect_target_to_recover(long before_kib)
{
	assert_int_equal(remote_wait_conns(&target, 1, 10000), 0);
	bystander_goes_on();
	if (!SYSTEM_SANITIZED)
		assert_true(target_kib() <= before_kib + CROWD * PEER_KIB);
}

static void send_garbage(unsigned options)
{
	uint8_t bytes[4096];

	assert_int_equal(raw_connect(&peer, target.port, options), 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)next_random();
	/* In half of the cases use a length that is soon complete. */
	if (seed & 1)
		bytes[0] = 0;
	size_t len = 1 + next_random() % sizeof(bytes);
	raw_send(&peer, bytes, len);
	/* The target processes only complete FPDUs; otherwise it waits for more bytes. */
	if (bytes[0] == 0 && len > 300)
		assert_int_not_equal(raw_expect_terminate(&peer, NULL), -ETIMEDOUT);
	raw_close(&peer);
}

static void garbage_is_not_placed_and_ends_the_connection(void **state)
{
	for (unsigned i = 0; i < GARBAGES; i++)
		send_garbage(i % 4);
	bystander_goes_on();
	assert_int_equal(remote_wait_conns(&target, 1, 10000), 0);
	for (size_t at = 64; at < SIZE; at += SIZE / 16)
		assert_string_equal(proc_ask(&target.proc, "peek 0 %zu 16", at),
				    "00000000000000000000000000000000");
}

static void a_reset_within_an_fpdu_affects_no_other(void **state)
{
	struct linger reset = {.l_onoff = 1};
	uint8_t begin[300] = {0xfc, 0x00, 0xc1, 0x40}; /* the begin of a Write of 64 KB */
	long before = target_kib();

	for (unsigned i = 0; i < GARBAGES; i++) {
		assert_int_equal(raw_connect(&peer, target.port, i % 4), 0);
		raw_send(&peer, begin, 1 + next_random() % sizeof(begin));
		setsockopt(peer.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		raw_close(&peer);
	}
	expect_target_to_recover(before);
}

static void limit_sending(struct raw *r)
{
	struct timeval patience = {.tv_usec = 50000};

	setsockopt(r->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* Each peer sends half an FPDU and then stays silent. */
static void unfinished_fpdus_hold_little(void **state)
{
	/* the begin of a Send of 64 KB */
	static uint8_t half[30000] = {0xfc, 0x00, 0x41, 0x43, [21] = 1};
	long before = target_kib(), during;

	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(raw_connect(&crowd[i], target.port, RAW_CRC), 0);
		assert_int_equal(raw_send(&crowd[i], half, sizeof(half)), 0);
	}
	bystander_goes_on();
	usleep(50000);
	during = target_kib();
	print_message("%ld KiB for each of %d unfinished FPDUs\n", (during - before) / CROWD,
		      CROWD);
	if (!SYSTEM_SANITIZED)
		assert_true(during - before <= (long)CROWD * PEER_KIB);
	for (int i = 0; i < CROWD; i++)
		raw_close(&crowd[i]);
	expect_target_to_recover(before);
}

/* The target echoes messages. If a peer reads no echoes, its messages use up first the receives,
 * and then the parking buffer. */
static void a_flood_of_messages_is_parked_and_then_not_read(void **state)
{
	static const uint8_t message[64];
	long before = target_kib(), during;
	int sent = 0;

	for (int i = 0; i < FLOODS; i++) {
		assert_int_equal(raw_connect(&crowd[i], target.port, RAW_PLAIN), 0);
		limit_sending(&crowd[i]);
		while (sent < 200000 && !raw_message(&crowd[i], message, sizeof(message)))
			sent++;
		sent = 0;
	}
	bystander_goes_on();
	during = target_kib();
	print_message("%ld KiB for each of %d floods\n", (during - before) / (FLOODS), FLOODS);
	if (!SYSTEM_SANITIZED)
		assert_true(during - before <= (long)FLOODS * PEER_KIB);
	for (int i = 0; i < FLOODS; i++)
		raw_close(&crowd[i]);
	expect_target_to_recover(before);
}

/* Other peers use the region, too, so no peer is allowed to invalidate it (RFC 5042 s6.4.5). */
static void invalidating_a_region_affects_no_other_peer(void **state)
{
	int error;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(raw_connect(&peer, target.port, i ? RAW_PLAIN : RAW_EXTENSIONS),
				 0);
		assert_int_equal(raw_invalidate(&peer, peer.region[0].stag), 0);
		error = raw_expect_terminate(&peer, NULL);
		if (error != TERM_RDMAP_STAG_NOT_INVALIDATED)
			fail_msg("%#x instead of %#x", (unsigned)error,
				 TERM_RDMAP_STAG_NOT_INVALIDATED);
		raw_close(&peer);
		bystander_goes_on();
	}
}

static void send_edge(const struct header_edge *edge, unsigned options, bool behind_another)
{
	static const uint8_t rest[2048];
	uint8_t fpdu[EDGE_FPDU_MAX];
	size_t len = header_edge_fpdu(edge, fpdu);

	assert_int_equal(raw_connect(&peer, target.port, options), 0);
	if (behind_another)
		assert_int_equal(raw_write(&peer, 0, 0, NULL, 0), 0);
	assert_int_equal(raw_send(&peer, fpdu, len), 0);
	if (edge->error)
		raw_send(&peer, rest, sizeof(rest));
}

static void expect_judgement(const struct header_edge *edge)
{
	const uint8_t *payload;
	struct ddp_hdr hdr;
	int got;

	if (!edge->error) { /* the connection must still work: a Read gets its answer */
		peer.msn[DDP_QN_REQUEST] += rdmap_ctrl_opcode(edge->ulpdu[1]) == RDMAP_READ_REQ;
		assert_int_equal(
			raw_read(&peer, peer.region[0].stag, peer.region[0].addr + 4096, 8), 0);
		do {
			got = raw_expect(&peer, RDMAP_READ_RESP, &hdr, &payload);
		} while (got == 0); /* got == 0: the answer to a Read of zero bytes */
		if (got != 8)
			fail_msg("%s: the stream does not go on: %d", edge->name, got);
		return;
	}
	got = raw_expect_terminate(&peer, NULL);
	if (got != (int)edge->error)
		fail_msg("%s: %#x instead of %#x", edge->name, (unsigned)got, edge->error);
}

static void fpdus_at_the_edges_of_their_headers_affect_no_other(void **state)
{
	for (size_t i = 0; i < header_edges_count; i++)
		for (unsigned how = 0; how < 4; how++) {
			send_edge(&header_edges[i], how & 1 ? RAW_CRC : RAW_PLAIN, how & 2);
			expect_judgement(&header_edges[i]);
			raw_close(&peer);
		}
	bystander_goes_on();
}

/* The peer is allowed to have this many Reads outstanding, but never reads the answers. */
static void reads_with_unread_answers_hold_little(void **state)
{
	long before = target_kib(), during;

	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(raw_connect(&crowd[i], target.port, RAW_PLAIN), 0);
		for (int k = 0; k < crowd[i].reply.ird && k < 16; k++)
			assert_int_equal(raw_read(&crowd[i], crowd[i].region[0].stag,
						  crowd[i].region[0].addr, SIZE),
					 0);
	}
	bystander_goes_on();
	usleep(50000);
	during = target_kib();
	print_message("%ld KiB for each of %d readers that do not read\n",
		      (during - before) / CROWD, CROWD);
	if (!SYSTEM_SANITIZED)
		assert_true(during - before <= (long)CROWD * PEER_KIB);
	for (int i = 0; i < CROWD; i++)
		raw_close(&crowd[i]);
	expect_target_to_recover(before);
}

static void more_reads_than_agreed_are_refused(void **state)
{
	int error;

	assert_int_equal(raw_connect(&peer, target.port, RAW_PLAIN), 0);
	/* The target answers some Reads, until the socket buffers are full. The other Reads then
	 * exceed the limit. */
	for (int i = 0; i <= 2 * peer.reply.ird; i++)
		if (raw_read(&peer, peer.region[0].stag, peer.region[0].addr, SIZE / 4))
			break;
	error = raw_expect_terminate(&peer, NULL);
	if (error != TERM_DDP_NO_BUFFER)
		fail_msg("%#x instead of %#x", (unsigned)error, TERM_DDP_NO_BUFFER);
	raw_close(&peer);
	bystander_goes_on();
}

/*
 * The target's program destroys the connection immediately, but the Terminate must still be sent.
 */
static void a_slow_reader_gets_the_terminate_of_a_destroyed_connection(void **state)
{
	int error;

	assert_int_equal(raw_connect(&peer, target.port, RAW_PLAIN), 0);
	for (int i = 0; i < 2 * peer.reply.ird; i++)
		assert_int_equal(raw_read(&peer, peer.region[0].stag, peer.region[0].addr, SIZE),
				 0);
	assert_int_equal(remote_wait_conns(&target, 1, 10000), 0);
	error = raw_expect_terminate(&peer, NULL);
	if (error != TERM_DDP_NO_BUFFER)
		fail_msg("%#x instead of %#x", (unsigned)error, TERM_DDP_NO_BUFFER);
	raw_close(&peer);
	bystander_goes_on();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_is_not_placed_and_ends_the_connection),
		cmocka_unit_test(fpdus_at_the_edges_of_their_headers_affect_no_other),
		cmocka_unit_test(a_reset_within_an_fpdu_affects_no_other),
		cmocka_unit_test(unfinished_fpdus_hold_little),
		cmocka_unit_test(a_flood_of_messages_is_parked_and_then_not_read),
		cmocka_unit_test(invalidating_a_region_affects_no_other_peer),
		cmocka_unit_test(reads_with_unread_answers_hold_little),
		cmocka_unit_test(more_reads_than_agreed_are_refused),
		cmocka_unit_test(a_slow_reader_gets_the_terminate_of_a_destroyed_connection),
	};

	seed = env_or("SYSTEM_SEED", (unsigned)time(NULL));
	printf("SYSTEM_SEED=%llu\n", (unsigned long long)seed);
	seed = (seed + 1) * 0x9e3779b97f4a7c15ull;
	return cmocka_run_group_tests(tests, start, stop);
}
