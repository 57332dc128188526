/* SPDX-License-Identifier: BSD-3-Clause */
/* test_atomic.c -- the atomic write: native if both ends consent, otherwise a fenced write. */
#include "ends.h"

#include <pthread.h>
#include <stdatomic.h>

static void atomic_write_places_eight_bytes(void **state)
{
	char word[8] = {1, 2, 3, 4, 5, 6, 7, 8}, want[8];
	struct ends d;

	ends_open(&d, NULL);
	memcpy(want, word, 8);
	OK(rpma_atomic_write(d.cli, d.at_srv, 4088, word, RPMA_F_COMPLETION_ALWAYS, &d));
	/* the program is allowed to change the source immediately */
	memset(word, 0xee, sizeof(word));
	ends_expect_wc(d.cli, ends_atomic_write_opcode(), &d);
	ends_flush(d.cli, d.at_srv, 4088, 8);
	assert_memory_equal(d.srv_buf + 4088, want, 8);
	assert_true(ends_is_zero(d.srv_buf, 4088));
	assert_true(ends_is_zero(d.srv_buf + 4096, 4096));
	ends_close(&d);
}

static void atomic_write_refuses_an_unaligned_target(void **state)
{
	const char word[8] = {0};
	struct ends d;

	ends_open(&d, NULL);
	for (size_t at = 1; at < 8; at++)
		assert_int_equal(rpma_atomic_write(d.cli, d.at_srv, at, word,
						   RPMA_F_COMPLETION_ALWAYS, NULL),
				 RPMA_E_INVAL);
	ends_close(&d);
}

/* Post data, a flush, and then the word that commits the data, without waiting between the
 * posts. */
static void atomic_write_follows_a_flush(void **state)
{
	const char flag[8] = "written";
	struct ends d;

	ends_open(&d, NULL);
	ends_fill(d.cli_buf, 8192, 3);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 8192, RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_flush(d.cli, d.at_srv, 0, 8192, RPMA_FLUSH_TYPE_VISIBILITY,
		      RPMA_F_COMPLETION_ON_ERROR, NULL));
	OK(rpma_atomic_write(d.cli, d.at_srv, 8192, flag, RPMA_F_COMPLETION_ALWAYS, &d));
	ends_expect_wc(d.cli, ends_atomic_write_opcode(), &d);
	while (__atomic_load_n((uint64_t *)(d.srv_buf + 8192), __ATOMIC_ACQUIRE) == 0)
		;
	assert_memory_equal(d.srv_buf + 8192, flag, 8);
	assert_true(ends_is_filled(d.srv_buf, 8192, 3));
	ends_close(&d);
}

/* The writer appends to a log. It posts the flush of each record before the update of the counter
 * that includes the record, and does not wait between the posts. */
static void a_reader_never_sees_the_counter_before_its_record(void **state)
{
	enum { RECORDS = 500, SIZE = 64, BATCH = 3 };
	enum rpma_flush_type type =
		ends_flushes_by_reading() ? RPMA_FLUSH_TYPE_VISIBILITY : RPMA_FLUSH_TYPE_PERSISTENT;
	const volatile uint64_t *counter;
	struct ends d;

	ends_open(&d, NULL);
	counter = (const volatile uint64_t *)d.srv_buf;
	for (uint64_t i = 1; i <= RECORDS; i++) {
		bool last = i % BATCH == 0 || i == RECORDS;
		size_t at = SIZE * (size_t)i;
		uint64_t seen = *counter;
		char word[8];

		assert_true(seen <= i && (seen == 0 || d.srv_buf[SIZE * seen] == (uint8_t)seen));
		memset(d.cli_buf + at, (int)(uint8_t)i, SIZE);
		memcpy(word, &i, sizeof(word));
		OK(rpma_write(d.cli, d.at_srv, at, d.cli_mr, at, SIZE, RPMA_F_COMPLETION_ON_ERROR,
			      NULL));
		OK(rpma_flush(d.cli, d.at_srv, at, SIZE, type, RPMA_F_COMPLETION_ON_ERROR, NULL));
		OK(rpma_atomic_write(d.cli, d.at_srv, 0, word,
				     last ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR,
				     &d));
		if (!last)
			continue;
		ends_expect_wc(d.cli, ends_atomic_write_opcode(), &d);
		ends_flush(d.cli, d.at_srv, 0, 8);
		assert_int_equal(*counter, i);
	}
	ends_close(&d);
}

struct watch {
	const uint64_t *word;
	atomic_bool over;
	bool torn;
};

static void *look_for_torn_words(void *arg)
{
	struct watch *w = arg;

	while (!atomic_load(&w->over)) {
		uint64_t v = __atomic_load_n(w->word, __ATOMIC_RELAXED);

		if (v != v % 256 * 0x0101010101010101)
			w->torn = true;
	}
	return NULL;
}

static void an_atomic_write_is_never_seen_torn(void **state)
{
	struct watch w = {0};
	pthread_t reader;
	struct ends d;

	if (ends_is_kernels() && ends_atomic_write_opcode() != ENDS_WC_ATOMIC_WRITE)
		skip(); /* on devices such as siw, readers can see a part of a plain write */
	ends_open(&d, NULL);
	w.word = (const uint64_t *)(d.srv_buf + 64);
	assert_int_equal(pthread_create(&reader, NULL, look_for_torn_words, &w), 0);
	for (int i = 0; i < 2000; i++) {
		char word[8];

		memset(word, i, sizeof(word));
		OK(rpma_atomic_write(d.cli, d.at_srv, 64, word, RPMA_F_COMPLETION_ALWAYS, &d));
		ends_expect_wc(d.cli, ends_atomic_write_opcode(), &d);
	}
	atomic_store(&w.over, true);
	pthread_join(reader, NULL);
	assert_false(w.torn);
	ends_close(&d);
}

static void an_atomic_write_needs_the_right_and_the_bounds(void **state)
{
	const char word[8] = "12345678";
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;

	for (int outside = 0; outside < 2; outside++) {
		struct ends d;

		ends_open(&d, NULL);
		OK(rpma_mr_reg(d.peer, d.srv_buf, 4096,
			       outside ? RPMA_MR_USAGE_WRITE_DST : RPMA_MR_USAGE_READ_SRC, &mr));
		remote = ends_remote(mr);
		OK(rpma_atomic_write(d.cli, remote, outside ? 4096 : 0, word,
				     RPMA_F_COMPLETION_ALWAYS, NULL));
		/* Over TCP, only the connection's end reports the failure of a Write that is not
		 * acknowledged. */
		if (!ends_flushes_by_reading() || !ends_is_tcp() || ends_acknowledges())
			assert_int_equal(ends_wait_failure(d.cli), IBV_WC_REM_ACCESS_ERR);
		else
			ends_expect_wc(d.cli, IBV_WC_RDMA_WRITE, NULL);
		assert_true(ends_is_zero(d.srv_buf, 8192));
		OK(rpma_mr_remote_delete(&remote));
		OK(rpma_mr_dereg(&mr));
		ends_close(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomic_write_places_eight_bytes),
		cmocka_unit_test(atomic_write_refuses_an_unaligned_target),
		cmocka_unit_test(atomic_write_follows_a_flush),
		cmocka_unit_test(a_reader_never_sees_the_counter_before_its_record),
		cmocka_unit_test(an_atomic_write_is_never_seen_torn),
		cmocka_unit_test(an_atomic_write_needs_the_right_and_the_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
