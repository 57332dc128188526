/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_hostile_crowd.c -- hundreds of hostile peers of every kind at the same time, and one honest
 * client. The client must read back the bytes that it wrote and flushed, and must be served in
 * bounded time. Afterwards the target must keep no resources of the hostile peers.
 */
#include "system/lib/check.h"

#include <time.h>

#include "base/clock.h"
#include "crowd.h"
#include "system/lib/client.h"
#include "system/lib/gauge.h"
#include "system/lib/remote.h"

#define SIZE     MIB
#define CHUNK    8192
#define SAMPLES  100000
#define CALM_MS  1000
#define STORM_MS (SYSTEM_SANITIZED ? 6000 : 4000)
/* Bound of the memory for one peer: parked messages (256 KiB), a receive buffer (128 KiB), and the
 * allocator's rounding. */
#define PEER_KIB 512
/*
 * The crowd's thread alone uses half of a small machine, so these limits are wide.
 */
#define RATIO_MAX 200
/* limit of the median, for a machine on which an undisturbed operation takes almost no time */
#define MEDIAN_MAX (500 * NSEC_PER_MS)

static struct remote target;
static struct client honest, newcomer;
static struct raw known;
static uint64_t latency[SAMPLES];

static int start(void **state)
{
	gauge_raise_nofile();
	return remote_start(&target, SYSTEM_TARGET, (const char *[]){"anon:1048576:0xff", NULL},
			    NULL) ||
	       client_open(&honest, 2 * CHUNK) || client_open(&newcomer, 4096) ||
	       client_connect(&honest, target.port, NULL);
}

static int stop(void **state)
{
	client_close(&newcomer);
	client_close(&honest);
	return proc_finish(&target.proc);
}

/* Write, flush and read in the lower half of the region, which the crowd does not use. */
static void work_once(unsigned round)
{
	size_t at = round * CHUNK % (SIZE / 2);
	uint8_t *back = honest.buf + CHUNK;

	memset(honest.buf, (int)(round % 251) + 1, CHUNK);
	memset(back, 0, CHUNK);
	OK(client_put(&honest, 0, at, CHUNK, NULL));
	OK(rpma_read(honest.conn, honest.mr, CHUNK, honest.at[0], at, CHUNK,
		     RPMA_F_COMPLETION_ALWAYS, NULL));
	struct ibv_wc wc;
	OK(client_wait_wc(honest.cq, &wc, CLIENT_WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(honest.buf, back, CHUNK);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Work for this time. Returns the median duration; *n gets the number of operations, *worst the
 * longest. */
static uint64_t work_for(int ms, size_t *n, uint64_t *worst)
{
	uint64_t end = clock_now_ns() + (uint64_t)ms * NSEC_PER_MS, begin;

	for (*n = 0; (begin = clock_now_ns()) < end && *n < SAMPLES; ++*n) {
		work_once((unsigned)*n);
		latency[*n] = clock_now_ns() - begin;
	}
	qsort(latency, *n, sizeof(latency[0]), compare);
	*worst = latency[*n - 1];
	return latency[*n / 2];
}

static void expect_every_role_was_played(void)
{
	int n;
	const struct crowd_count *count = crowd_stop(&n);

	for (int i = 0; i < n; i++) {
		print_message("%-18s %5lu connections %7lu violations %5lu ended\n", count[i].name,
			      count[i].connections, count[i].violations, count[i].ended);
		assert_true(count[i].connections > 0);
		assert_true(!count[i].is_short || count[i].ended > 0);
	}
}

/*
 * Number of epoll descriptors of the engine's second thread, which stays after the crowd has made
 * it start.
 */
#define LOOP_FDS 2

static void expect_descriptors_to_return(int before)
{
	before += LOOP_FDS;
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;

	while (gauge_fds(target.proc.pid) > before && clock_now_ns() < end)
		usleep(20000);
	assert_int_equal(gauge_fds(target.proc.pid), before);
}

/* A new client connects while the crowd is connected. If the target accepts more slowly than the
 * crowd connects, its backlog is sometimes full, and a rejected client tries again. */
static void newcomer_gets_in(void)
{
	uint64_t end = clock_now_ns() + 20 * NSEC_PER_SEC;
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
	int ret;

	while ((ret = client_connect(&newcomer, target.port, &event)) == RPMA_E_PROVIDER &&
	       event == RPMA_CONN_REJECTED && clock_now_ns() < end)
		usleep(20000);
	if (ret)
		fail_msg("a newcomer is not let in: %s (%s)", rpma_err_2str(ret),
			 rpma_utils_conn_event_2str(event));
	OK(client_echo(&newcomer, 32));
	client_disconnect(&newcomer);
}

static void an_honest_client_is_served_among_hostile_peers(void **state)
{
	long kib = gauge_rss_anon_kib(target.proc.pid), most;
	int fds = gauge_fds(target.proc.pid);
	uint64_t calm, storm, calm_worst, storm_worst;
	size_t calm_n, storm_n;

	calm = work_for(CALM_MS, &calm_n, &calm_worst);
	assert_int_equal(raw_connect(&known, target.port, RAW_PLAIN), 0);
	raw_close(&known);
	crowd_start(target.port, &known);
	storm = work_for(STORM_MS, &storm_n, &storm_worst);
	newcomer_gets_in();
	most = gauge_rss_anon_kib(target.proc.pid);
	expect_every_role_was_played();
	print_message(
		"median %d us before (of %zu), %d us in the crowd (of %zu); worst %d and %d us; "
		"%ld KiB more\n",
		(int)(calm / 1000), calm_n, (int)(storm / 1000), storm_n, (int)(calm_worst / 1000),
		(int)(storm_worst / 1000), most - kib);
	assert_true(storm <= RATIO_MAX * calm || storm <= MEDIAN_MAX);
	if (!SYSTEM_SANITIZED)
		assert_true(most - kib <= (long)CROWD_SIZE * PEER_KIB);
	assert_int_equal(remote_wait_conns(&target, 1, 20000), 0);
	expect_descriptors_to_return(fds);
	work_for(100, &calm_n, &calm_worst);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_honest_client_is_served_among_hostile_peers),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
