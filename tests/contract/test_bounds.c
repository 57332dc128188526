/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bounds.c -- memory that a peer must not access: outside a region, in a region without the
 * necessary right, and in a deregistered region. */
#include <endian.h>
#include <sys/mman.h>

#include "ends.h"

#define PAGE  4096u
#define INNER (4 * PAGE) /* only this part is registered: not the pages before and after */

/* A region in the middle of memory. The content of the memory around the region is known. */
struct fenced {
	struct ends d;
	uint8_t *all;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
};

static void fenced_open(struct fenced *f, int usage)
{
	ends_open(&f->d, NULL);
	f->all = ends_map(INNER + 2 * PAGE);
	memset(f->all, 0x11, INNER + 2 * PAGE);
	OK(rpma_mr_reg(f->d.peer, f->all + PAGE, INNER, usage, &f->mr));
	f->remote = ends_remote(f->mr);
	memset(f->d.cli_buf, 0x22, ENDS_BUF);
}

static void fenced_close(struct fenced *f)
{
	OK(rpma_mr_remote_delete(&f->remote));
	OK(rpma_mr_dereg(&f->mr));
	ends_close(&f->d);
	munmap(f->all, INNER + 2 * PAGE);
}

static void expect_untouched(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != 0x11)
			fail_msg("byte %zu was overwritten", i);
}

static void expect_both_lose_the_connection(struct ends *d)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;

	if (!ends_errors_disconnect())
		return;
	assert_true(ends_event_within(d->srv, 5000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
	assert_true(ends_event_within(d->cli, 5000, &ev));
	assert_true(ev == RPMA_CONN_CLOSED || ev == RPMA_CONN_LOST);
}

/* The write must not succeed: the flush after it fails, and both ends get the event. */
static void refused_write(struct fenced *f, size_t at, size_t len)
{
	struct ends *d = &f->d;

	OK(rpma_write(d->cli, f->remote, at, d->cli_mr, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL));
	if (!rpma_flush(d->cli, d->at_srv, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, d) &&
	    ends_late_posts_complete())
		assert_int_not_equal(ends_wait_failure(d->cli), IBV_WC_SUCCESS);
	expect_both_lose_the_connection(d);
}

static void write_behind_the_end_touches_nothing(void **state)
{
	static const size_t lens[] = {1, 8, 100, 3 * PAGE};
	struct fenced f;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		fenced_open(&f, RPMA_MR_USAGE_WRITE_DST);
		refused_write(&f, INNER, lens[i]);
		expect_untouched(f.all, INNER + 2 * PAGE);
		fenced_close(&f);
	}
}

static void write_across_the_end_touches_nothing_behind_it(void **state)
{
	static const size_t lens[] = {2, 9, 100, 2 * PAGE, 4 * PAGE};
	struct fenced f;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		fenced_open(&f, RPMA_MR_USAGE_WRITE_DST);
		refused_write(&f, INNER - lens[i] + 1, lens[i]);
		expect_untouched(f.all, PAGE);
		expect_untouched(f.all + PAGE + INNER, PAGE);
		fenced_close(&f);
	}
}

/* Returns a descriptor of the region that begins `before` bytes too early, as a hostile client
 * could forge it. */
static struct rpma_mr_remote *remote_from_before(const struct rpma_mr_local *mr, uint64_t before)
{
	struct rpma_mr_remote *remote;
	uint8_t desc[64];
	uint64_t addr;
	size_t size;

	OK(rpma_mr_get_descriptor_size(mr, &size));
	OK(rpma_mr_get_descriptor(mr, desc));
	memcpy(&addr, desc, sizeof(addr));
	addr = htole64(le64toh(addr) - before);
	memcpy(desc, &addr, sizeof(addr));
	OK(rpma_mr_remote_from_descriptor(desc, size, &remote));
	return remote;
}

static void write_before_the_begin_touches_nothing(void **state)
{
	struct fenced f;

	fenced_open(&f, RPMA_MR_USAGE_WRITE_DST);
	OK(rpma_mr_remote_delete(&f.remote));
	f.remote = remote_from_before(f.mr, 64);
	refused_write(&f, 0, 128);
	expect_untouched(f.all, INNER + 2 * PAGE);
	fenced_close(&f);
}

static void write_without_the_right_touches_nothing(void **state)
{
	struct fenced f;

	fenced_open(&f, RPMA_MR_USAGE_READ_SRC);
	refused_write(&f, 0, 64);
	expect_untouched(f.all, INNER + 2 * PAGE);
	fenced_close(&f);
}

static void read_without_the_right_fails(void **state)
{
	struct fenced f;

	if (ends_is_kernels() && ends_is_tcp())
		skip(); /* siw does not check the right to read (doc/wire.md, section 10) */
	fenced_open(&f, RPMA_MR_USAGE_WRITE_DST);
	OK(rpma_read(f.d.cli, f.d.cli_mr, 0, f.remote, 0, 64, RPMA_F_COMPLETION_ALWAYS, NULL));
	assert_int_not_equal(ends_wait_failure(f.d.cli), IBV_WC_SUCCESS);
	expect_both_lose_the_connection(&f.d);
	assert_int_equal(f.d.cli_buf[0], 0x22);
	fenced_close(&f);
}

/* A Read gives the peer the STag and the address of the Read's sink. */
static void the_sink_of_a_read_cannot_be_written_by_its_peer(void **state)
{
	struct fenced f;
	struct ends *d = &f.d;
	struct ibv_wc wc;

	if (ends_is_kernels() && ends_is_tcp())
		skip(); /* iWARP cards require the right to write for every read */
	fenced_open(&f, RPMA_MR_USAGE_READ_DST);
	memset(d->srv_buf, 0x33, ENDS_BUF);
	OK(rpma_read(d->cli, f.mr, 0, d->at_srv, 0, 64, RPMA_F_COMPLETION_ALWAYS, &f));
	ends_expect_wc(d->cli, IBV_WC_RDMA_READ, &f);
	assert_memory_equal(f.all + PAGE, d->srv_buf, 64);
	memset(d->srv_buf, 0x44, ENDS_BUF);
	OK(rpma_write(d->srv, f.remote, 0, d->srv_mr, 0, 128, RPMA_F_COMPLETION_ON_ERROR, NULL));
	if (!rpma_flush(d->srv, d->at_cli, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
			RPMA_F_COMPLETION_ALWAYS, d)) {
		ends_wait_wc(d->srv, &wc);
		assert_int_not_equal(wc.status, IBV_WC_SUCCESS);
	}
	expect_both_lose_the_connection(d);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(f.all[PAGE + i], 0x33);
	expect_untouched(f.all + PAGE + 64, INNER + PAGE - 64);
	fenced_close(&f);
}

static void read_across_the_end_fails(void **state)
{
	struct fenced f;

	fenced_open(&f, RPMA_MR_USAGE_READ_SRC);
	OK(rpma_read(f.d.cli, f.d.cli_mr, 0, f.remote, INNER - 8, 64, RPMA_F_COMPLETION_ALWAYS,
		     NULL));
	assert_int_not_equal(ends_wait_failure(f.d.cli), IBV_WC_SUCCESS);
	expect_both_lose_the_connection(&f.d);
	fenced_close(&f);
}

static void region_of_another_peer_object_is_out_of_reach(void **state)
{
	struct ibv_context *ctx;
	struct rpma_peer *other;
	struct fenced f;

	fenced_open(&f, RPMA_MR_USAGE_WRITE_DST);
	OK(rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	OK(rpma_peer_new(ctx, &other));
	OK(rpma_mr_remote_delete(&f.remote));
	OK(rpma_mr_dereg(&f.mr));
	OK(rpma_mr_reg(other, f.all + PAGE, INNER, RPMA_MR_USAGE_WRITE_DST, &f.mr));
	f.remote = ends_remote(f.mr);
	refused_write(&f, 0, 64);
	expect_untouched(f.all, INNER + 2 * PAGE);
	fenced_close(&f);
	OK(rpma_peer_delete(&other));
}

static void deregistered_region_is_out_of_reach(void **state)
{
	struct fenced f;

	fenced_open(&f, RPMA_MR_USAGE_WRITE_DST);
	OK(rpma_mr_dereg(&f.mr));
	refused_write(&f, 0, 64);
	expect_untouched(f.all, INNER + 2 * PAGE);
	fenced_close(&f);
}

static void refusal_hurts_only_its_own_connection(void **state)
{
	struct rpma_conn *cli, *srv;
	struct fenced f;

	fenced_open(&f, RPMA_MR_USAGE_WRITE_DST);
	ends_connect(&f.d, NULL, &cli, &srv);
	refused_write(&f, INNER, 64);
	OK(rpma_write(cli, f.d.at_srv, 0, f.d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	ends_flush(cli, f.d.at_srv, 0, 64);
	assert_int_equal(f.d.srv_buf[63], 0x22);
	OK(rpma_conn_delete(&cli));
	OK(rpma_conn_delete(&srv));
	fenced_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_behind_the_end_touches_nothing),
		cmocka_unit_test(write_across_the_end_touches_nothing_behind_it),
		cmocka_unit_test(write_before_the_begin_touches_nothing),
		cmocka_unit_test(write_without_the_right_touches_nothing),
		cmocka_unit_test(read_without_the_right_fails),
		cmocka_unit_test(the_sink_of_a_read_cannot_be_written_by_its_peer),
		cmocka_unit_test(read_across_the_end_fails),
		cmocka_unit_test(region_of_another_peer_object_is_out_of_reach),
		cmocka_unit_test(deregistered_region_is_out_of_reach),
		cmocka_unit_test(refusal_hurts_only_its_own_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
