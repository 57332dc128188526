/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_atomics.c -- compare-and-swap and fetch-and-add on words in the other end's memory, with
 * several writers of one region.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "ends_ext.h"

enum { ALWAYS = RPMA_F_COMPLETION_ALWAYS };

static uint64_t *word(struct ends *d, size_t offset)
{
	return (uint64_t *)(void *)(d->srv_buf + offset);
}

static uint64_t result(const struct ends *d, size_t offset)
{
	uint64_t value;

	memcpy(&value, d->cli_buf + offset, sizeof(value));
	return value;
}

/* Open two connected ends. Skip the rest of the test if the peer has no atomics. */
static void open_with_atomics(struct ends *d)
{
	ends_open(d, NULL);
	if (ends_has_cap(d->cli, RPMA_CAP_ATOMICS))
		return;
	ends_close(d);
	skip();
}

static void a_word_is_swapped_only_if_it_compares(void **state)
{
	struct ends d;

	open_with_atomics(&d);
	*word(&d, 64) = 0x1122334455667788;
	OK(rpma_atomic_compare_swap(d.cli, d.cli_mr, 3, d.at_srv, 64, 0x1122334455667788, 5, ALWAYS,
				    &d));
	ends_expect_wc(d.cli, IBV_WC_COMP_SWAP, &d);
	assert_int_equal(result(&d, 3), 0x1122334455667788);
	assert_int_equal(*word(&d, 64), 5);
	OK(rpma_atomic_compare_swap(d.cli, d.cli_mr, 16, d.at_srv, 64, 4, 9, ALWAYS, &d));
	ends_expect_wc(d.cli, IBV_WC_COMP_SWAP, &d);
	assert_int_equal(result(&d, 16), 5);
	assert_int_equal(*word(&d, 64), 5);
	ends_close(&d);
}

static void a_sum_wraps_around(void **state)
{
	struct ends d;

	open_with_atomics(&d);
	*word(&d, 8) = UINT64_MAX;
	OK(rpma_atomic_fetch_add(d.cli, d.cli_mr, 0, d.at_srv, 8, 3, ALWAYS, &d));
	ends_expect_wc(d.cli, IBV_WC_FETCH_ADD, &d);
	assert_int_equal(result(&d, 0), UINT64_MAX);
	assert_int_equal(*word(&d, 8), 2);
	ends_close(&d);
}

static void a_batch_may_write_and_then_take_a_lock(void **state)
{
	struct rpma_batch *b;
	struct ends d;

	open_with_atomics(&d);
	ends_fill(d.cli_buf + 4096, 64, 7);
	OK(rpma_batch_new(d.cli, 4, &b));
	OK(rpma_batch_write(b, d.at_srv, 4096, d.cli_mr, 4096, 64, RPMA_F_COMPLETION_ON_ERROR,
			    NULL));
	OK(rpma_batch_atomic_fetch_add(b, d.cli_mr, 0, d.at_srv, 0, 2, RPMA_F_COMPLETION_ON_ERROR,
				       NULL));
	OK(rpma_batch_atomic_compare_swap(b, d.cli_mr, 8, d.at_srv, 0, 2, 40, ALWAYS, &d));
	OK(rpma_batch_post(b));
	ends_expect_wc(d.cli, IBV_WC_COMP_SWAP, &d);
	assert_int_equal(result(&d, 0), 0);
	assert_int_equal(result(&d, 8), 2);
	assert_int_equal(*word(&d, 0), 40);
	assert_true(ends_is_filled(d.srv_buf + 4096, 64, 7));
	OK(rpma_batch_delete(&b));
	ends_close(&d);
}

enum { ROUNDS = 200 };

static void *add_at_the_target(void *at)
{
	for (int i = 0; i < ROUNDS; i++)
		atomic_fetch_add((_Atomic uint64_t *)at, 1);
	return NULL;
}

/* Two connections add to one word; with the software RNIC, the target's own program adds, too. */
static void no_addition_is_lost(void **state)
{
	struct rpma_conn *cli2, *srv2;
	uint64_t own = ends_is_kernels() ? 0 : ROUNDS;
	pthread_t thread;
	struct ends d;

	open_with_atomics(&d);
	ends_connect(&d, NULL, &cli2, &srv2);
	if (own)
		assert_int_equal(pthread_create(&thread, NULL, add_at_the_target, word(&d, 0)), 0);
	for (int i = 0; i < ROUNDS; i++) {
		OK(rpma_atomic_fetch_add(d.cli, d.cli_mr, 0, d.at_srv, 0, 1, ALWAYS, &d));
		OK(rpma_atomic_fetch_add(cli2, d.cli_mr, 8, d.at_srv, 0, 1, ALWAYS, &d));
		ends_expect_wc(d.cli, IBV_WC_FETCH_ADD, &d);
		ends_expect_wc(cli2, IBV_WC_FETCH_ADD, &d);
	}
	if (own)
		assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(*word(&d, 0), 2 * ROUNDS + own);
	OK(rpma_conn_delete(&cli2));
	OK(rpma_conn_delete(&srv2));
	ends_close(&d);
}

static void expect_said(const char *part)
{
	if (!strstr(rpma_err_last(), part))
		fail_msg("\"%s\" is not in: %s", part, rpma_err_last());
}

static void what_cannot_be_is_refused_before_it_is_posted(void **state)
{
	struct rpma_mr_remote *at;
	struct rpma_mr_local *mr;
	struct ends d;

	ends_open(&d, NULL);
	assert_int_equal(rpma_atomic_fetch_add(d.cli, d.cli_mr, 0, d.at_srv, 4, 1, ALWAYS, &d),
			 RPMA_E_INVAL);
	expect_said("no multiple of 8");
	OK(rpma_mr_reg(d.peer, d.srv_buf, 4096, RPMA_MR_USAGE_READ_SRC, &mr));
	at = ends_remote(mr);
	assert_int_equal(rpma_atomic_fetch_add(d.cli, d.cli_mr, 0, at, 0, 1, ALWAYS, &d),
			 RPMA_E_NOSUPP);
	expect_said("RPMA_MR_USAGE_WRITE_DST");
	OK(rpma_mr_remote_delete(&at));
	OK(rpma_mr_dereg(&mr));
	if (!ends_has_cap(d.cli, RPMA_CAP_ATOMICS)) {
		struct rpma_batch *b;

		assert_int_equal(
			rpma_atomic_compare_swap(d.cli, d.cli_mr, 0, d.at_srv, 0, 0, 1, ALWAYS, &d),
			RPMA_E_NOSUPP);
		expect_said("no atomic operations");
		OK(rpma_batch_new(d.cli, 1, &b));
		assert_int_equal(
			rpma_batch_atomic_fetch_add(b, d.cli_mr, 0, d.at_srv, 0, 1, ALWAYS, &d),
			RPMA_E_NOSUPP);
		OK(rpma_batch_delete(&b));
	}
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_is_swapped_only_if_it_compares),
		cmocka_unit_test(a_sum_wraps_around),
		cmocka_unit_test(a_batch_may_write_and_then_take_a_lock),
		cmocka_unit_test(no_addition_is_lost),
		cmocka_unit_test(what_cannot_be_is_refused_before_it_is_posted),
	};

	return cmocka_run_group_tests_name("atomics", tests, NULL, NULL);
}
