/* SPDX-License-Identifier: BSD-3-Clause */
#include "system/librpmem/place.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "system/librpmem/kills.h"

#define RECORDS 2000
#define RECORD  512

struct killer {
	pid_t victim;
	unsigned delay_us;
};

static void *kill_later(void *arg)
{
	struct killer *k = arg;

	usleep(k->delay_us);
	kill(k->victim, SIGKILL);
	return NULL;
}

static size_t record_at(unsigned n)
{
	return 4096 + (size_t)(n % RECORDS) * RECORD;
}

/* Write records until the other end is killed. Returns the number of acknowledged records. */
static unsigned write_until_killed(RPMEMpool *rpp, unsigned round, struct killer *k)
{
	pthread_t thread;
	unsigned n = 0;

	assert_int_equal(pthread_create(&thread, NULL, kill_later, k), 0);
	for (;; n++) {
		memset(place_local + record_at(n), (int)(round * 37 + n + n / RECORDS), RECORD);
		if (rpmem_persist(rpp, record_at(n), RECORD, n % 4, 0))
			break;
	}
	pthread_join(thread, NULL);
	return n;
}

/* The last record was possibly not acknowledged. It can nevertheless have replaced the oldest
 * record that is otherwise expected. */
static void expect_records(unsigned n)
{
	const unsigned char *replica = place_map("pool.set.part", NULL);

	for (unsigned i = n > RECORDS - 1 ? n - (RECORDS - 1) : 0; i < n; i++)
		assert_memory_equal(replica + record_at(i), place_local + record_at(i), RECORD);
	munmap((void *)replica, PLACE_POOL);
}

static void round_of(const char *target, unsigned round, bool kill_ssh, unsigned delay_us)
{
	char path[600];
	RPMEMpool *rpp;
	pid_t daemon;
	struct killer k = {.delay_us = delay_us};
	unsigned n;

	snprintf(path, sizeof(path), "%s/daemon.pid", place_dir);
	unlink(path);
	rpp = place_open(target);
	daemon = place_daemon();
	k.victim = kill_ssh ? place_child() : daemon;
	assert_true(k.victim > 0);
	n = write_until_killed(rpp, round, &k);
	RPMEM_FAILS(rpmem_close(rpp), ECONNRESET);
	place_wait_gone(daemon);
	expect_records(n);
}

void kills_lose_nothing(const char *target, unsigned rounds, bool ssh_too)
{
	unsigned seed = env_or("SEED", (unsigned)getpid());

	print_message("seed %u\n", seed);
	RPMEM_OK(rpmem_close(place_create(target)));
	for (unsigned i = 0; i < rounds; i++)
		round_of(target, i, ssh_too && i % 2, (unsigned)rand_r(&seed) % 30000);
}
