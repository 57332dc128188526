/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_dereg.c -- regions are deregistered while peers use them. No peer accesses the memory
 * afterwards.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "ends.h"

struct writer {
	struct ends *d;
	struct rpma_mr_remote *target;
	size_t len;
	atomic_uint rounds;
	atomic_bool stop;
};

/* Write to the target until the region is deregistered or the test stops this thread. */
static void *write_on(void *arg)
{
	struct writer *w = arg;
	struct ibv_wc wc = {0};

	while (!atomic_load(&w->stop)) {
		memset(w->d->cli_buf, (int)atomic_fetch_add(&w->rounds, 1), w->len);
		if (rpma_write(w->d->cli, w->target, 0, w->d->cli_mr, 0, w->len,
			       RPMA_F_COMPLETION_ALWAYS, NULL))
			break;
		ends_wait_wc(w->d->cli, &wc);
		if (wc.status != IBV_WC_SUCCESS)
			break;
	}
	return NULL;
}

static void no_write_lands_after_deregistration(void **state)
{
	size_t len = 8u << 20;
	struct ends_opts opts = {.buf_size = len};
	uint8_t *copy = malloc(len);

	assert_non_null(copy);
	for (int i = 0; i < 5; i++) {
		struct ends d;
		struct writer w = {.d = &d, .len = len};
		pthread_t thread;

		ends_open(&d, &opts);
		w.target = d.at_srv;
		assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
		while (atomic_load(&w.rounds) < 3)
			ends_sleep_ms(1);
		OK(rpma_mr_dereg(&d.srv_mr));
		memcpy(copy, d.srv_buf, len);
		ends_sleep_ms(20);
		assert_memory_equal(copy, d.srv_buf, len);
		atomic_store(&w.stop, true);
		pthread_join(thread, NULL);
		ends_close(&d);
	}
	free(copy);
}

/* The program can even unmap the memory, because no peer accesses it any more. */
static void memory_may_go_after_deregistration(void **state)
{
	size_t len = 4u << 20;
	struct ends_opts opts = {.buf_size = len};
	struct writer w = {.len = len};
	struct rpma_mr_local *mr;
	pthread_t thread;
	struct ends d;
	uint8_t *mem;

	ends_open(&d, &opts);
	mem = ends_map(len);
	mr = ends_reg(&d, mem, len);
	w.d = &d;
	w.target = ends_remote(mr);
	assert_int_equal(pthread_create(&thread, NULL, write_on, &w), 0);
	while (atomic_load(&w.rounds) < 3)
		ends_sleep_ms(1);
	OK(rpma_mr_dereg(&mr));
	munmap(mem, len);
	ends_sleep_ms(20);
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	OK(rpma_mr_remote_delete(&w.target));
	ends_close(&d);
}

/*
 * An operation in progress can succeed or fail, but no byte that the program stores later arrives.
 */
static void source_is_free_after_deregistration(void **state)
{
	size_t len = 8u << 20;
	struct ends_opts opts = {.buf_size = len};

	SOFTRNIC_ONLY(); /* a device can read the source until the request is complete */
	for (int i = 0; i < 5; i++) {
		struct ibv_wc wc = {0};
		struct ends d;

		ends_open(&d, &opts);
		memset(d.cli_buf, 0x11, len);
		OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, len, RPMA_F_COMPLETION_ALWAYS, &d));
		OK(rpma_mr_dereg(&d.cli_mr));
		memset(d.cli_buf, 0x22, len);
		ends_wait_wc(d.cli, &wc);
		assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &d);
		ends_sleep_ms(10);
		OK(rpma_mr_dereg(&d.srv_mr));
		assert_null(memchr(d.srv_buf, 0x22, len));
		/* the private data carry the size of this region to the peer */
		d.cli_mr = ends_reg(&d, d.cli_buf, len);
		ends_close(&d);
	}
}

static void sink_of_a_read_is_free_after_deregistration(void **state)
{
	size_t len = 8u << 20;
	struct ends_opts opts = {.buf_size = len};

	SOFTRNIC_ONLY(); /* a device can write to the sink until the Read is complete */
	for (int i = 0; i < 5; i++) {
		struct ibv_wc wc = {0};
		struct ends d;

		ends_open(&d, &opts);
		memset(d.srv_buf, 0x11, len);
		OK(rpma_read(d.cli, d.cli_mr, 0, d.at_srv, 0, len, RPMA_F_COMPLETION_ALWAYS, &d));
		OK(rpma_mr_dereg(&d.cli_mr));
		memset(d.cli_buf, 0x22, len);
		ends_wait_wc(d.cli, &wc);
		assert_ptr_equal((void *)(uintptr_t)wc.wr_id, &d);
		assert_null(memchr(d.cli_buf, 0x11, len));
		d.cli_mr = ends_reg(&d, d.cli_buf, len);
		ends_close(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_write_lands_after_deregistration),
		cmocka_unit_test(memory_may_go_after_deregistration),
		cmocka_unit_test(source_is_free_after_deregistration),
		cmocka_unit_test(sink_of_a_read_is_free_after_deregistration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
