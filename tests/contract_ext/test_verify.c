/* SPDX-License-Identifier: BSD-3-Clause */
/* test_verify.c -- the digest of the bytes that the target reads back, and the durability class in
 * the digest's answer. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ends_ext.h"

static atomic_int disk_error;

/* Replaces libc's msync() by a function that fails as on a failing disk. */
__attribute__((visibility("default"))) int msync(void *addr, size_t len, int flags)
{
	int err = atomic_load(&disk_error);

	if (!err)
		return (int)syscall(SYS_msync, addr, len, flags);
	errno = err;
	return -1;
}

static void verify(struct ends *d, const struct rpma_mr_remote *dst, size_t at, size_t len,
		   enum rpma_digest_alg alg, struct rpma_digest *digest)
{
	memset(digest, 0xee, sizeof(*digest));
	OK(rpma_verify(d->cli, dst, at, len, alg, digest, RPMA_F_COMPLETION_ALWAYS, digest));
	ends_expect_wc(d->cli, (enum ibv_wc_opcode)RPMA_WC_VERIFY, digest);
}

static enum rpma_durability query(struct ends *d, const struct rpma_mr_remote *dst, size_t at,
				  size_t len)
{
	enum rpma_durability class = (enum rpma_durability)77;

	OK(rpma_query_durability(d->cli, dst, at, len, &class, RPMA_F_COMPLETION_ALWAYS, d));
	ends_expect_wc(d->cli, (enum ibv_wc_opcode)RPMA_WC_QUERY, d);
	return class;
}

static void the_digest_of_what_was_written_is_that_of_its_source(void **state)
{
	static const size_t lens[] = {1, 8, 100, 4096, 4097, 60000};
	struct rpma_digest ours, theirs;
	struct ends_file file;
	struct ends d;

	ends_open(&d, NULL);
	ends_file_open(&file, &d, ENDS_BUF);
	for (int alg = RPMA_DIGEST_AUTO; alg <= RPMA_DIGEST_BLAKE2B; alg++)
		for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			size_t at = 77 * i;

			ends_fill(d.cli_buf, lens[i], (unsigned)i);
			OK(rpma_write(d.cli, file.remote, at, d.cli_mr, 0, lens[i],
				      RPMA_F_COMPLETION_ON_ERROR, NULL));
			verify(&d, file.remote, at, lens[i], (enum rpma_digest_alg)alg, &theirs);
			OK(rpma_digest_compute((enum rpma_digest_alg)alg, d.cli_buf, lens[i],
					       &ours));
			assert_true(rpma_digest_equal(&ours, &theirs));
			assert_memory_equal(ours.bytes, theirs.bytes, sizeof(ours.bytes));
			assert_int_equal(theirs.durability, RPMA_DURABILITY_FILE);
			/* A direct read can report MEDIUM although this file system does not report
			 * dirty pages. */
			if (theirs.source != RPMA_DIGEST_FROM_CACHE) {
				assert_int_equal(theirs.source, RPMA_DIGEST_FROM_MEDIUM);
				assert_true(ends_file_is_direct(&file));
			}
		}
	ends_file_close(&file);
	ends_close(&d);
}

static void verify_makes_the_range_durable(void **state)
{
	struct rpma_digest theirs;
	struct ends_file file;
	uint8_t copy[5000];
	struct ends d;

	ends_open(&d, NULL);
	ends_file_open(&file, &d, ENDS_BUF);
	ends_fill(d.cli_buf, sizeof(copy), 4);
	OK(rpma_write(d.cli, file.remote, 3000, d.cli_mr, 0, sizeof(copy),
		      RPMA_F_COMPLETION_ON_ERROR, NULL));
	verify(&d, file.remote, 3000, sizeof(copy), RPMA_DIGEST_AUTO, &theirs);
	assert_int_not_equal(ends_counter(d.srv, "writebacks"), 0);
	ends_fill(copy, sizeof(copy), 4);
	ends_file_expect(&file, copy, sizeof(copy), 3000);
	ends_file_close(&file);
	ends_close(&d);
}

static void one_changed_byte_changes_the_digest(void **state)
{
	struct rpma_digest before, after;
	struct ends_file file;
	struct ends d;

	ends_open(&d, NULL);
	ends_file_open(&file, &d, ENDS_BUF);
	for (size_t len = 100; len <= 10000; len *= 100) {
		verify(&d, file.remote, 0, len, RPMA_DIGEST_AUTO, &before);
		verify(&d, file.remote, 0, len, RPMA_DIGEST_AUTO, &after);
		assert_true(rpma_digest_equal(&before, &after));
		file.map[len - 1] ^= 0x10; /* write like another program at the target */
		verify(&d, file.remote, 0, len, RPMA_DIGEST_AUTO, &after);
		assert_false(rpma_digest_equal(&before, &after));
	}
	ends_file_close(&file);
	ends_close(&d);
}

static void of_volatile_memory_it_is_a_digest_of_memory(void **state)
{
	struct rpma_digest ours, theirs;
	struct ends d;

	ends_open(&d, NULL);
	ends_fill(d.cli_buf, 9000, 8);
	OK(rpma_write(d.cli, d.at_srv, 0, d.cli_mr, 0, 9000, RPMA_F_COMPLETION_ON_ERROR, NULL));
	verify(&d, d.at_srv, 0, 9000, RPMA_DIGEST_AUTO, &theirs);
	OK(rpma_digest_compute(RPMA_DIGEST_AUTO, d.cli_buf, 9000, &ours));
	assert_true(rpma_digest_equal(&ours, &theirs));
	assert_int_equal(theirs.source, RPMA_DIGEST_FROM_MEMORY);
	assert_int_equal(theirs.durability, RPMA_DURABILITY_VOLATILE);
	ends_close(&d);
}

/* A file backs the region's first page; the second page is anonymous memory. */
static void a_range_has_the_weakest_class_of_its_parts(void **state)
{
	uint8_t *map = ends_map(8192);
	struct rpma_mr_remote *remote;
	struct rpma_digest digest;
	struct rpma_mr_local *mr;
	struct ends_file file;
	struct ends d;

	ends_open(&d, NULL);
	ends_file_open(&file, &d, 4096);
	assert_ptr_equal(
		mmap(map, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.fd, 0), map);
	mr = ends_reg(&d, map, 8192);
	remote = ends_remote(mr);
	assert_int_equal(query(&d, remote, 0, 4096), RPMA_DURABILITY_FILE);
	assert_int_equal(query(&d, remote, 4095, 1), RPMA_DURABILITY_FILE);
	assert_int_equal(query(&d, remote, 4096, 1), RPMA_DURABILITY_VOLATILE);
	assert_int_equal(query(&d, remote, 0, 8192), RPMA_DURABILITY_VOLATILE);
	verify(&d, remote, 4000, 200, RPMA_DIGEST_AUTO, &digest);
	assert_int_equal(digest.durability, RPMA_DURABILITY_VOLATILE);
	assert_int_equal(digest.source, RPMA_DIGEST_FROM_MEMORY);
	OK(rpma_mr_remote_delete(&remote));
	OK(rpma_mr_dereg(&mr));
	munmap(map, 8192);
	ends_file_close(&file);
	ends_close(&d);
}

static void a_failing_disk_gives_no_digest(void **state)
{
	struct rpma_digest digest = {.len = 77};
	struct ends_file file;
	uint32_t code;
	struct ibv_wc wc;
	struct ends d;

	ends_open(&d, NULL);
	ends_file_open(&file, &d, 4096);
	OK(rpma_write(d.cli, file.remote, 0, d.cli_mr, 0, 64, RPMA_F_COMPLETION_ON_ERROR, NULL));
	atomic_store(&disk_error, EIO);
	OK(rpma_verify(d.cli, file.remote, 0, 64, RPMA_DIGEST_AUTO, &digest,
		       RPMA_F_COMPLETION_ALWAYS, &d));
	ends_wait_wc(d.cli, &wc);
	atomic_store(&disk_error, 0);
	assert_int_equal(wc.status, IBV_WC_REM_OP_ERR);
	assert_int_equal(rpma_wc_get_reason(d.cli, &wc, &code), RPMA_REASON_WRITE_BACK);
	assert_int_equal(code, EIO);
	assert_int_equal(digest.len, 77);
	ends_file_close(&file);
	ends_close(&d);
}

static void questions_outside_of_the_region_are_refused(void **state)
{
	for (int i = 0; i < 2; i++) {
		enum rpma_durability class;
		struct rpma_digest digest;
		uint32_t code;
		struct ibv_wc wc;
		struct ends d;

		ends_open(&d, NULL);
		if (i)
			OK(rpma_verify(d.cli, d.at_srv, ENDS_BUF - 8, 16, RPMA_DIGEST_AUTO, &digest,
				       RPMA_F_COMPLETION_ON_ERROR, &d));
		else
			OK(rpma_query_durability(d.cli, d.at_srv, ENDS_BUF - 8, 16, &class,
						 RPMA_F_COMPLETION_ON_ERROR, &d));
		ends_wait_wc(d.cli, &wc);
		assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(rpma_wc_get_reason(d.cli, &wc, &code), RPMA_REASON_TERMINATE_IN);
		assert_int_equal(code, 0x0101);
		ends_close(&d);
	}
}

static void a_region_that_is_not_for_persistent_flushes_is_not_verified(void **state)
{
	struct rpma_mr_remote *remote;
	struct rpma_digest digest;
	struct rpma_mr_local *mr;
	struct ends d;

	ends_open(&d, NULL);
	OK(rpma_mr_reg(d.peer, d.srv_buf, 4096,
		       RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, &mr));
	remote = ends_remote(mr);
	assert_int_equal(rpma_verify(d.cli, remote, 0, 8, RPMA_DIGEST_AUTO, &digest,
				     RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_NOSUPP);
	OK(rpma_mr_remote_delete(&remote));
	OK(rpma_mr_dereg(&mr));
	ends_close(&d);
}

/* The peer has not consented to the extensions, so the call fails here. */
static void other_peers_are_not_asked(void **state)
{
	enum rpma_durability class;
	struct rpma_digest digest;
	struct ends d;

	ends_open(&d, NULL);
	assert_false(ends_has_cap(d.cli, RPMA_CAP_VERIFY));
	assert_false(ends_has_cap(d.cli, RPMA_CAP_QUERY));
	assert_int_equal(rpma_verify(d.cli, d.at_srv, 0, 8, RPMA_DIGEST_AUTO, &digest,
				     RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_NOSUPP);
	assert_int_equal(rpma_query_durability(d.cli, d.at_srv, 0, 8, &class,
					       RPMA_F_COMPLETION_ALWAYS, NULL),
			 RPMA_E_NOSUPP);
	ends_flush(d.cli, d.at_srv, 0, 8); /* the refused request has no effect */
	ends_close(&d);
}

int main(void)
{
	const struct CMUnitTest plain[] = {
		cmocka_unit_test(other_peers_are_not_asked),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_digest_of_what_was_written_is_that_of_its_source),
		cmocka_unit_test(verify_makes_the_range_durable),
		cmocka_unit_test(one_changed_byte_changes_the_digest),
		cmocka_unit_test(of_volatile_memory_it_is_a_digest_of_memory),
		cmocka_unit_test(a_range_has_the_weakest_class_of_its_parts),
		cmocka_unit_test(a_failing_disk_gives_no_digest),
		cmocka_unit_test(questions_outside_of_the_region_are_refused),
		cmocka_unit_test(a_region_that_is_not_for_persistent_flushes_is_not_verified),
	};

	return ends_is_plain() ? cmocka_run_group_tests(plain, NULL, NULL)
			       : cmocka_run_group_tests(tests, NULL, NULL);
}
