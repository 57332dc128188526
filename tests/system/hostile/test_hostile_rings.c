/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostile_rings.c -- peers that move to rings in shared memory as agreed, and then write
 * impossible positions and malformed messages to the rings. The target must close only these peers'
 * connections, with a reason, and free their rings. Memory to which they have no access must not
 * change.
 */
#include "system/lib/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "lib/lingering.h"
#include "system/lib/client.h"
#include "system/lib/gauge.h"
#include "system/lib/rawrings.h"
#include "system/lib/remote.h"

#define SIZE     65536
#define GARBAGES 60
#define RUINS    10
#define PASSED   24
#define LOG_FILE "hostile_rings.log"

static struct remote target;
static struct client bystander;
static struct raw peer;
static struct rawrings rings;
static int rings_before, fds_before;
static uint64_t seed = 1;

static uint64_t next_random(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return seed * 0x2545f4914f6cdd1dull;
}

/* --- the target ----------------------------------------------------------------------------- */

/* Count the mappings of rings in the target. */
static int count_rings(void)
{
	char path[64], line[512];
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)target.proc.pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "memfd:softrnic") != NULL;
	if (f)
		fclose(f);
	return n;
}

static void bystander_goes_on(void)
{
	OK(client_write(&bystander, 0, 0, 64, NULL));
	OK(client_flush(&bystander, 0, 0, 64, RPMA_FLUSH_TYPE_VISIBILITY, NULL));
	OK(client_echo(&bystander, 32));
}

/* Start the target with a log that goes to a file. */
static int start_target(void)
{
	int log = open(LOG_FILE, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_APPEND, 0644);
	int before = dup(STDERR_FILENO), ret;

	dup2(log, STDERR_FILENO);
	ret = remote_start(&target, SYSTEM_TARGET,
			   (const char *[]){"anon:65536:0xff", "anon:65536:0x1", NULL},
			   (const char *[]){"SOFTRNIC_LOG=warning", NULL});
	dup2(before, STDERR_FILENO);
	close(before);
	close(log);
	return ret;
}

static int start(void **state)
{
	if (start_target() || strcmp(proc_ask(&target.proc, "fill 0 0"), "ok") != 0 ||
	    strcmp(proc_ask(&target.proc, "fill 1 0"), "ok") != 0 ||
	    client_open(&bystander, 4096) || client_connect(&bystander, target.port, NULL))
		return -1;
	for (int i = 0; i < 2000 && count_rings() == 0; i++) {
		bystander_goes_on();
		usleep(1000);
	}
	usleep(100000); /* by now the target has closed the sockets that set the rings up */
	bystander_goes_on();
	rings_before = count_rings();
	fds_before = gauge_fds(target.proc.pid);
	return rings_before == 1 ? 0 : -1;
}

static int stop(void **state)
{
	client_close(&bystander);
	return proc_finish(&target.proc);
}

static bool log_has(const char *text)
{
	char line[512];
	FILE *f = fopen(LOG_FILE, "re");
	bool has = false;

	while (f && !has && fgets(line, sizeof(line), f))
		has = strstr(line, text);
	if (f)
		fclose(f);
	return has;
}

/* Check that no byte was placed after the first 64 bytes, which an honest peer uses. */
static void expect_nothing_placed(void)
{
	static const char zeros[] = "00000000000000000000000000000000";

	for (int region = 0; region < 2; region++)
		for (size_t at = 64; at < SIZE; at += 1024)
			assert_string_equal(proc_ask(&target.proc, "peek %d %zu 16", region, at),
					    zeros);
}

static void connect_rings(void)
{
	assert_int_equal(rawrings_connect(&peer, &rings, target.port), 0);
}

static bool target_has_freed(void)
{
	return count_rings() == rings_before && gauge_fds(target.proc.pid) <= fds_before;
}

/* The target must close the connection and free all its resources while this end still has its
 * sockets open. */
static void expect_end(void)
{
	assert_int_equal(remote_wait_conns(&target, 1, RAW_WAIT_MS), 0);
	for (int ms = 0; ms < RAW_WAIT_MS && !target_has_freed(); ms++)
		usleep(1000);
	assert_int_equal(count_rings(), rings_before);
	assert_in_range(gauge_fds(target.proc.pid), 1, fds_before);
	rawrings_close(&peer);
	bystander_goes_on();
	expect_nothing_placed();
}

/* --- tests ---------------------------------------------------------------------------------- */

static void a_peer_that_keeps_to_the_rules_is_served(void **state)
{
	const uint8_t *payload;
	struct ddp_hdr hdr;
	struct raw_region *region = &peer.region[0];

	connect_rings();
	assert_int_equal(count_rings(), rings_before + 1);
	assert_int_equal(raw_write(&peer, region->stag, region->addr + 64, "own bytes", 9), 0);
	assert_int_equal(raw_read(&peer, region->stag, region->addr + 64, 9), 0);
	assert_int_equal(raw_expect(&peer, RDMAP_READ_RESP, &hdr, &payload), 9);
	assert_memory_equal(payload, "own bytes", 9);
	assert_int_equal(raw_write(&peer, region->stag, region->addr + 64, "\0\0\0\0\0\0\0\0", 9),
			 0);
	assert_int_equal(raw_read(&peer, region->stag, region->addr + 64, 9), 0);
	assert_int_equal(raw_expect(&peer, RDMAP_READ_RESP, &hdr, &payload), 9);
	raw_close(&peer); /* this call closes only the socket */
	expect_end();
}

static void an_impossible_position_of_the_writer_ends_its_connection(void **state)
{
	for (int i = 0; i < 4; i++) {
		connect_rings();
		uint64_t positions[] = {rings.written - 1, rings.written + rings.size + 1,
					rings.written + (UINT64_C(1) << 63), UINT64_MAX};

		atomic_store(&rings.ring[0]->tail, positions[i]);
		rawrings_wake(&peer);
		expect_end();
	}
	assert_true(log_has("the peer's position in a ring"));
}

/* The target notices the position when it writes the next answer. */
static void an_impossible_position_of_the_reader_ends_its_connection(void **state)
{
	for (int i = 0; i < 3; i++) {
		connect_rings();
		uint64_t there = atomic_load(&rings.ring[1]->tail);
		uint64_t positions[] = {there + (1u << 30), there - rings.size - 1, UINT64_MAX / 2};
		struct raw_region *region = &peer.region[0];

		atomic_store(&rings.ring[1]->head, positions[i]);
		/* Request more bytes than are free in the ring according to the position that the
		 * target sees. */
		for (uint64_t sent = 0; sent <= rings.size; sent += SIZE)
			raw_read(&peer, region->stag, region->addr, SIZE);
		expect_end();
	}
}

static void send_random(size_t len)
{
	uint8_t bytes[4096];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)next_random();
	if (next_random() % 2) /* in half of the cases use a length that is soon complete */
		bytes[0] = 0;
	raw_send(&peer, bytes, len);
}

static void garbage_ends_its_own_connection(void **state)
{
	for (int i = 0; i < GARBAGES; i++) {
		connect_rings();
		send_random(1 + next_random() % 4096);
		/* end the connection, because the target possibly waits for more bytes */
		raw_close(&peer);
		expect_end();
	}
}

static void an_fpdu_that_is_cut_or_too_long_is_not_executed(void **state)
{
	struct raw_region *region;
	uint8_t bytes[256] = {0};
	struct ddp_hdr hdr = {.tagged = true,
			      .last = true,
			      .version = DDP_VERSION,
			      .ulp = rdmap_ctrl(RDMAP_WRITE)};
	int len;

	for (unsigned i = 0; i < 6; i++) {
		static const uint16_t lengths[] = {0, 1, 2, 13, 200, UINT16_MAX};

		connect_rings();
		region = &peer.region[0];
		hdr.stag = region->stag;
		hdr.to = region->addr + 4096;
		len = ddp_encode(bytes + 2, DDP_HDR_MAX, &hdr);
		memset(bytes + 2 + len, 0xee, 32);
		bytes[0] = (uint8_t)(lengths[i] >> 8);
		bytes[1] = (uint8_t)lengths[i];
		raw_send(&peer, bytes, 2 + (size_t)len + 32);
		raw_close(&peer);
		/* The received part of a Write is allowed to be placed. */
		if (lengths[i] == UINT16_MAX) {
			assert_int_equal(remote_wait_conns(&target, 1, RAW_WAIT_MS), 0);
			assert_string_equal(proc_ask(&target.proc, "fill 0 0"), "ok");
		}
		expect_end();
	}
}

/* While the target is stopped, write a Write to the ring, and then the word "given up". */
static void what_is_in_the_ring_of_a_peer_that_gave_up_is_not_executed(void **state)
{
	struct raw_region *region;

	connect_rings();
	region = &peer.region[0];
	proc_signal(&target.proc, SIGSTOP);
	assert_int_equal(raw_write(&peer, region->stag, region->addr + 1024, "late", 5), 0);
	rawrings_give_up(&peer);
	proc_signal(&target.proc, SIGCONT);
	assert_int_equal(remote_wait_conns(&target, 1, RAW_WAIT_MS), 0);
	raw_close(&peer); /* the target waits until this end closes */
	expect_end();
}

/*
 * Closing a lingering descriptor blocks a thread for 20 s, and the test sends more descriptors than
 * the target has receiving threads. If the kernel supports this, the target's socket refuses
 * descriptors, so that they do not even arrive.
 */
static void descriptors_that_linger_delay_no_other_connection(void **state)
{
	static struct rawrings their_rings[PASSED];
	static struct raw peers[PASSED];
	uint64_t begun = clock_now_ns();

	assert_int_equal(lingering_begin(PASSED, 20), 0);
	for (int i = 0; i < PASSED; i++) {
		assert_int_equal(rawrings_connect(&peers[i], &their_rings[i], target.port), 0);
		lingering_pass(their_rings[i].fd, "x", 1);
	}
	bystander_goes_on();
	assert_true(clock_now_ns() - begun < 15 * NSEC_PER_SEC);
	lingering_end();
	for (int i = 0; i < PASSED; i++)
		rawrings_close(&peers[i]);
	assert_int_equal(remote_wait_conns(&target, 1, RAW_WAIT_MS), 0);
}

static void expect_refused(uint32_t stag, uint64_t to)
{
	static const uint8_t bytes[16] = {[0 ... 15] = 0xee};

	connect_rings();
	assert_int_equal(raw_write(&peer, stag, to, bytes, sizeof(bytes)), 0);
	assert_true(raw_expect_terminate(&peer, NULL) > 0);
	raw_close(&peer); /* the target waits until this end closes */
	expect_end();
}

static void what_it_may_not_write_is_refused_with_a_terminate(void **state)
{
	struct raw_region *region = peer.region; /* all connections use the same region */

	connect_rings();
	raw_close(&peer);
	expect_end();
	expect_refused(region[0].stag, region[0].addr + SIZE - 8);
	expect_refused(region[0].stag, region[0].addr - 8);
	expect_refused(region[1].stag, region[1].addr + 64);
	expect_refused(region[0].stag + 256, region[0].addr + 64);
}

/* Change positions, flags and bytes, even after the writer's position, and remove pages. */
static void memory_that_changes_all_the_time_ends_its_own_connection(void **state)
{
	for (int i = 0; i < RUINS; i++) {
		uint64_t end = clock_now_ns() + 50 * NSEC_PER_MS;

		connect_rings();
		while (clock_now_ns() < end) {
			size_t at =
				next_random() % 4 ? next_random() % 256 : next_random() % rings.len;

			rings.base[at] = (uint8_t)next_random();
			if (next_random() % 1024 == 0)
				fallocate(rings.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					  0, (off_t)rings.len);
			if (next_random() % 64 == 0)
				rawrings_wake(&peer);
		}
		bystander_goes_on();
		raw_close(&peer);
		expect_end();
	}
}

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_that_keeps_to_the_rules_is_served),
		cmocka_unit_test(an_impossible_position_of_the_writer_ends_its_connection),
		cmocka_unit_test(an_impossible_position_of_the_reader_ends_its_connection),
		cmocka_unit_test(garbage_ends_its_own_connection),
		cmocka_unit_test(an_fpdu_that_is_cut_or_too_long_is_not_executed),
		cmocka_unit_test(what_is_in_the_ring_of_a_peer_that_gave_up_is_not_executed),
		cmocka_unit_test(descriptors_that_linger_delay_no_other_connection),
		cmocka_unit_test(what_it_may_not_write_is_refused_with_a_terminate),
		cmocka_unit_test(memory_that_changes_all_the_time_ends_its_own_connection),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, start, stop);
}
