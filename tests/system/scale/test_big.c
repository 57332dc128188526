/* SPDX-License-Identifier: BSD-3-Clause */
/* test_big.c -- a gibibyte is received from the socket directly into registered memory, so neither
 * side needs memory besides the regions. */
#include "system/lib/check.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "system/lib/client.h"
#include "system/lib/gauge.h"
#include "system/lib/remote.h"

#define GROWTH_MAX_KIB 4096
#define WAIT_MS        50000

struct watch {
	pthread_t thread;
	atomic_bool started, stop;
	pid_t pid[2];
	long before[2], most[2];
};

static void watch_begin(struct watch *w)
{
	for (int i = 0; i < 2; i++)
		w->before[i] = w->most[i] = gauge_rss_anon_kib(w->pid[i]);
	atomic_store(&w->started, true);
}

/* Records the peak, which includes memory that was used only for a short time, but not the stack of
 * this thread. */
static void *watch_main(void *arg)
{
	struct watch *w = arg;

	watch_begin(w);
	while (!atomic_load(&w->stop)) {
		for (int i = 0; i < 2; i++) {
			long now = gauge_rss_anon_kib(w->pid[i]);

			w->most[i] = now > w->most[i] ? now : w->most[i];
		}
		usleep(5000);
	}
	return NULL;
}

static void watch_start(struct watch *w, pid_t target)
{
	memset(w, 0, sizeof(*w));
	w->pid[0] = getpid();
	w->pid[1] = target;
	assert_int_equal(pthread_create(&w->thread, NULL, watch_main, w), 0);
	while (!atomic_load(&w->started))
		usleep(1000);
}

static void watch_end(struct watch *w)
{
	atomic_store(&w->stop, true);
	pthread_join(w->thread, NULL);
	for (int i = 0; i < 2; i++) {
		long growth = w->most[i] - w->before[i];

		print_message("%s: at most %ld KiB more than before\n", i ? "target" : "initiator",
			      growth);
		/* In a sanitizer build the sanitizer's shadow memory would be included. */
		if (!SYSTEM_SANITIZED)
			assert_true(growth <= GROWTH_MAX_KIB);
	}
}

/* Returns a size with which both regions fit into memory at the same time. */
static size_t transfer_size(void)
{
	long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	size_t size = SYSTEM_SANITIZED ? 64 * MIB : 1024 * MIB;

	while (size > 64 * MIB && (size_t)pages * (size_t)page < 3 * size)
		size /= 2;
	print_message("%zu MiB\n", size / MIB);
	return size;
}

static void write_all(struct client *c, size_t size, size_t piece)
{
	struct ibv_wc wc;

	for (size_t at = 0; at < size; at += piece) {
		OK(rpma_write(c->conn, c->at[0], at, c->mr, at, piece, RPMA_F_COMPLETION_ALWAYS,
			      NULL));
		OK(client_wait_wc(c->cq, &wc, WAIT_MS));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	OK(rpma_flush(c->conn, c->at[0], 0, size, RPMA_FLUSH_TYPE_VISIBILITY,
		      RPMA_F_COMPLETION_ALWAYS, NULL));
	OK(client_wait_wc(c->cq, &wc, WAIT_MS));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void expect_byte(struct remote *target, size_t at, unsigned byte)
{
	const char *line = proc_ask(&target->proc, "peek 0 %zu 1", at);
	char want[8];

	snprintf(want, sizeof(want), "%02x", byte);
	assert_non_null(line);
	assert_string_equal(line, want);
}

static void a_gibibyte_needs_no_memory_of_its_own(void **state)
{
	size_t size = transfer_size();
	struct remote target;
	struct client c;
	struct watch w;
	char region[32];

	snprintf(region, sizeof(region), "anon:%zu:0xff", size);
	remote_must_start(&target, NULL, region);
	assert_string_equal(proc_ask(&target.proc, "fill 0 1"), "ok");
	OK(client_open(&c, size));
	memset(c.buf, 0x5a, size);
	OK(client_connect(&c, target.port, NULL));
	watch_start(&w, target.proc.pid);
	uint64_t start = clock_now_ns();
	write_all(&c, size, size);
	print_message("one write: %.2f GiB/s\n",
		      (double)size / 1.073741824 / (double)(clock_now_ns() - start));
	write_all(&c, size, 16 * MIB);
	watch_end(&w);
	for (size_t at = 0; at < size; at += size / 8)
		expect_byte(&target, at, 0x5a);
	expect_byte(&target, size - 1, 0x5a);
	client_close(&c);
	assert_int_equal(proc_finish(&target.proc), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gibibyte_needs_no_memory_of_its_own),
	};

	setenv("SOFTRNIC_CRC", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
