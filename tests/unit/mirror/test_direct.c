/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct mappings: stores reach the file immediately, and an extent is recorded before the first
 * store to it. The table of slots is smaller than the number of extents (standin.c).
 */
#include "mirror/set.h"

#include "mapped.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXTENTS (STANDIN_SIZE / MIRROR_EXTENT)
#define THREADS 4

enum { PATIENCE_MS = 20000 };

static sigjmp_buf on_fault;

/* Call this in each test: before each test cmocka replaces the library's signal handler by its
 * own. */
static void map_direct(unsigned flags)
{
	void *at;
	size_t len;
	int rc = rpmirror_map(STANDIN_SET, NULL, RPMIRROR_MAP_DIRECT | flags, &m, &at, &len);

	if (rc)
		fail_msg("%s: %s", rpmirror_err_2str(rc), rpmirror_errormsg());
	addr = at;
	assert_int_equal(len, STANDIN_SIZE);
}

static void store(size_t offset, uint64_t value)
{
	__atomic_store_n((uint64_t *)(void *)(addr + offset), value, __ATOMIC_RELEASE);
}

static uint64_t copy_word(unsigned slot, size_t offset)
{
	uint64_t word;

	memcpy(&word, standin_copy(s, slot) + offset, sizeof(word));
	return word;
}

static int flush(size_t offset, size_t len)
{
	struct rpmirror_range range = {addr + offset, len};

	return rpmirror_flush(m, &range, 1, 0, NULL);
}

/* Returns true if a slot in the metadata file names the extent. */
static bool is_recorded(uint32_t extent)
{
	const uint64_t *slots = (const uint64_t *)(const void *)(meta_ring(&m->hot.meta) -
								 META_RING_AT + META_HOT_AT);

	for (unsigned i = 0; i < META_HOT_SLOTS; i++)
		if ((__atomic_load_n(&slots[i], __ATOMIC_RELAXED) & UINT32_MAX) == extent + 1)
			return true;
	return false;
}

static void await_insync(mirror_mask insync)
{
	for (int waited = 0; waited < PATIENCE_MS && standin_record(s).view.insync != insync;
	     waited++)
		usleep(1000);
	assert_int_equal(standin_record(s).view.insync, insync);
}

/* ---- stores ---- */

static void test_stores_are_in_the_file_at_once(void **state)
{
	map_direct(0);
	assert_false(is_recorded(1));
	store(MIRROR_EXTENT + 8, 7);
	assert_int_equal(copy_word(0, MIRROR_EXTENT + 8), 7);
	assert_int_equal(flush(MIRROR_EXTENT, 64), 0);
	assert_flushed(7, MIRROR_EXTENT, 64);
}

static void test_what_differs_is_recorded_before(void **state)
{
	map_direct(0);
	for (uint64_t round = 1; round <= 8; round++) {
		size_t offset = round * 3 % EXTENTS * MIRROR_EXTENT + 8 * round;

		store(offset, round);
		if (copy_word(1, offset) != round || copy_word(2, offset) != round)
			assert_true(is_recorded((uint32_t)(offset / MIRROR_EXTENT)));
	}
}

static void assert_all_equal(void)
{
	for (unsigned slot = 1; slot < 3; slot++)
		assert_memory_equal(standin_copy(s, slot), standin_copy(s, 0), STANDIN_SIZE);
}

/* There are more extents than slots. An extent that loses its slot is flushed to all members. */
static void test_a_clean_end_leaves_equal_copies(void **state)
{
	map_direct(0);
	for (uint64_t round = 1; round <= 12; round++)
		store(round % EXTENTS * MIRROR_EXTENT + round * 4096, round);
	assert_int_equal(flush(0, 8), 0);
	store(2 * MIRROR_EXTENT - 8, 99);
	assert_int_equal(rpmirror_unmap(&m), 0);
	assert_true(standin_unmapped_clean(s));
	assert_int_equal(copy_word(1, 2 * MIRROR_EXTENT - 8), 99);
	assert_all_equal();
}

/* An instruction that stores to two extents needs slots for both. */
static void test_stores_across_extents(void **state)
{
	map_direct(0);
	for (uint64_t i = 1; i < EXTENTS; i++) {
		uint64_t value = 0x0102030405060708 * i;

		memcpy(addr + i * MIRROR_EXTENT - 3, &value, sizeof(value));
		assert_memory_equal(standin_copy(s, 0) + i * MIRROR_EXTENT - 3, &value, 8);
	}
	memset(addr, 5, STANDIN_SIZE);
	assert_int_equal(flush(0, STANDIN_SIZE), 0);
	assert_flushed(7, 0, STANDIN_SIZE);
}

struct storing {
	pthread_t thread;
	unsigned number;
};

static void *thread_store(void *arg)
{
	struct storing *t = arg;

	for (uint64_t i = 0; i < 24; i++) {
		size_t offset = (i * 7 + t->number) % EXTENTS * MIRROR_EXTENT +
				(i * THREADS + t->number) * 64;
		struct rpmirror_range range = {addr + offset, 8};

		store(offset, i + 1);
		if (i % 3 == 0 && rpmirror_flush(m, &range, 1, 0, NULL))
			return arg;
	}
	return NULL;
}

static void test_threads_store_and_flush_at_once(void **state)
{
	struct storing threads[THREADS];
	void *failed;

	map_direct(0);
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i].number = i;
		pthread_create(&threads[i].thread, NULL, thread_store, &threads[i]);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i].thread, &failed);
		assert_null(failed);
	}
	assert_int_equal(rpmirror_sync(m, NULL, 0), 0);
	assert_all_equal();
}

static void test_sync_of_all_is_of_what_was_stored(void **state)
{
	struct rpmirror_state st = {.size = sizeof(st)};

	map_direct(0);
	store(8, 1);
	store(MIRROR_EXTENT + 8, 2);
	assert_int_equal(rpmirror_sync(m, NULL, 0), 0);
	for (unsigned slot = 0; slot < 3; slot++) {
		assert_int_equal(copy_word(slot, 8), 1);
		assert_int_equal(copy_word(slot, MIRROR_EXTENT + 8), 2);
	}
	assert_int_equal(rpmirror_store8(m, (uint64_t *)(void *)(addr + 16), 3), 0);
	assert_int_equal(copy_word(2, 16), 3);
	assert_int_equal(rpmirror_get_state(m, &st), 0);
	/* a flush sends its bytes in parts of half a MiB, each with a number */
	assert_true(st.acked_seq < 40);
}

/* ---- stores by the kernel ---- */

static void test_the_kernel_stores_to_what_was_touched(void **state)
{
	uint64_t word = 5;
	int ends[2];

	map_direct(0);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], &word, 8), 8);
	assert_int_equal(read(ends[0], addr + 4096, 8), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(rpmirror_touch(m, addr + 4096, 8), 0);
	for (uint64_t i = 1; i < EXTENTS; i++) /* take all slots for other extents */
		store(i * MIRROR_EXTENT, i);
	assert_int_equal(read(ends[0], addr + 4096, 8), 8);
	assert_int_equal(flush(4096, 8), 0);
	assert_int_equal(copy_word(1, 4096), 5);
	close(ends[0]);
	close(ends[1]);
}

static void test_no_more_is_touched_than_there_are_slots(void **state)
{
	map_direct(0);
	assert_int_equal(rpmirror_touch(m, addr, 2 * MIRROR_EXTENT), RPMIRROR_E_NOMEM);
	assert_int_equal(rpmirror_touch(m, addr + MIRROR_EXTENT, 1), RPMIRROR_E_NOMEM);
	assert_int_equal(flush(0, 8), 0);
	assert_int_equal(rpmirror_touch(m, addr + MIRROR_EXTENT, 1), 0);
	assert_int_equal(rpmirror_touch(m, addr + MIRROR_EXTENT, 1), 0);
	assert_int_equal(rpmirror_touch(m, addr, 0), 0);
	assert_int_equal(rpmirror_touch(m, addr + STANDIN_SIZE, 1), RPMIRROR_E_INVAL);
	assert_int_equal(rpmirror_touch(m, addr, STANDIN_SIZE + 1), RPMIRROR_E_INVAL);
}

/* ---- faults that are not stores to the mapping ---- */

static volatile sig_atomic_t faults;

static void jump_out(int sig)
{
	faults++;
	siglongjmp(on_fault, 1);
}

static struct sigaction before;

static void install_handler(void)
{
	struct sigaction jump = {.sa_handler = jump_out};

	faults = 0;
	assert_int_equal(sigaction(SIGSEGV, &jump, &before), 0);
}

static void test_the_applications_handler_gets_the_others(void **state)
{
	volatile uint8_t *page;

	install_handler();
	map_direct(0);
	page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!sigsetjmp(on_fault, 1))
		*page = 1;
	assert_int_equal(faults, 1);
	store(0, 1);
	assert_int_equal(faults, 1);
	munmap((void *)page, 4096);
	sigaction(SIGSEGV, &before, NULL);
}

#ifdef __x86_64__
/* If the library took the jump for a store, the fault would occur again and again. */
static void test_a_jump_into_the_mapping_is_no_store(void **state)
{
	void (*code)(void);

	install_handler();
	map_direct(0);
	memset(addr, 0xc3, 16);
	memcpy(&code, &addr, sizeof(code));
	if (!sigsetjmp(on_fault, 1))
		code();
	assert_int_equal(faults, 1);
	sigaction(SIGSEGV, &before, NULL);
}
#endif

static void wait_for_fault(void (*access)(void))
{
	struct timespec pause = {0, 1000000};

	if (sigsetjmp(on_fault, 1))
		return;
	for (int waited = 0; waited < PATIENCE_MS; waited++) {
		access();
		nanosleep(&pause, NULL);
	}
	fail_msg("the mapping can be used");
}

static void access_by_load(void)
{
	(void)*(volatile uint8_t *)addr;
}

static void access_by_store(void)
{
	store(3 * MIRROR_EXTENT, 1);
}

static void test_a_fenced_primary_faults(void **state)
{
	install_handler();
	setenv("RPMIRROR_ON_FENCED", "protect", 1);
	map_direct(0);
	setenv("RPMIRROR_ON_FENCED", "error", 1);
	store(0, 1);
	standin_overtake(s);
	wait_for_fault(access_by_load);
	wait_for_fault(access_by_store);
	assert_int_equal(faults, 2);
	assert_int_equal(rpmirror_touch(m, addr, 1), RPMIRROR_E_FENCED);
	sigaction(SIGSEGV, &before, NULL);
	assert_int_equal(rpmirror_unmap(&m), RPMIRROR_E_FENCED);
}

/* ---- the end of the role ---- */

static void test_a_fenced_primary_stores_to_no_file(void **state)
{
	map_direct(0);
	store(0, 1);
	standin_overtake(s);
	while (flush(0, 8) != RPMIRROR_E_FENCED)
		;
	store(0, 2);
	store(3 * MIRROR_EXTENT, 3);
	assert_int_equal(*addr, 2);
	assert_int_equal(copy_word(0, 0), 1);
	assert_int_equal(copy_word(0, 3 * MIRROR_EXTENT), 0);
	assert_true(is_recorded(0));
	assert_int_equal(rpmirror_unmap(&m), RPMIRROR_E_FENCED);
	assert_false(standin_unmapped_clean(s));
}

static int setup_short_lease(void **state)
{
	setup(state);
	standin_set_lease_ms(s, 500);
	return 0;
}

static bool is_protected(void)
{
	bool is;

	pthread_mutex_lock(&m->lock);
	is = m->is_protected;
	pthread_mutex_unlock(&m->lock);
	return is;
}

/* Without a lease no page can be accessed. When the lease returns, the pages that were accessible
 * before are accessible again. */
static void test_a_lease_that_returns_opens_what_was_open(void **state)
{
	struct timespec pause = {0, 10000000};

	install_handler();
	setenv("RPMIRROR_ON_FENCED", "protect", 1);
	map_direct(0);
	setenv("RPMIRROR_ON_FENCED", "error", 1);
	for (int waited = 0; rpmirror_confirm(m) && waited < PATIENCE_MS; waited += 10)
		nanosleep(&pause, NULL);
	assert_int_equal(rpmirror_touch(m, addr, 1), 0);
	standin_set_lease(s, false);
	wait_for_fault(access_by_load);
	assert_int_equal(rpmirror_touch(m, addr + MIRROR_EXTENT, 1), RPMIRROR_E_NOMEM);
	standin_set_lease(s, true);
	for (int waited = 0; is_protected() && waited < PATIENCE_MS; waited += 10)
		nanosleep(&pause, NULL);
	store(8, 3);
	store(MIRROR_EXTENT, 4);
	assert_int_equal(flush(0, 16), 0);
	assert_int_equal(copy_word(1, 8), 3);
	assert_int_equal(faults, 1);
	sigaction(SIGSEGV, &before, NULL);
}

/* ---- below min_copies ---- */

static int setup_blocking(void **state)
{
	setup(state);
	standin_set_min_copies(s, 3);
	standin_set_blocked_ms(s, UINT32_MAX);
	return 0;
}

static void *thread_mend(void *arg)
{
	struct timespec pause = {0, 50000000};

	nanosleep(&pause, NULL);
	standin_mend(s, 2);
	return NULL;
}

/* Below min_copies no data can be flushed to the members. So no slot becomes free, and the store
 * waits. */
static void test_a_store_waits_for_a_slot(void **state)
{
	pthread_t mending;

	map_direct(0);
	store(0, 1);
	standin_cut(s, 2);
	pthread_create(&mending, NULL, thread_mend, NULL);
	for (uint64_t i = 0; i < 2 * EXTENTS; i++)
		store(i % EXTENTS * MIRROR_EXTENT + 8 * i, i + 10);
	pthread_join(mending, NULL);
	for (uint64_t i = 0; i < 2 * EXTENTS; i++)
		assert_int_equal(copy_word(0, i % EXTENTS * MIRROR_EXTENT + 8 * i), i + 10);
	assert_int_equal(rpmirror_sync(m, NULL, 0), 0);
	assert_all_equal();
}

/* ---- children ---- */

static void test_a_child_has_no_mapping(void **state)
{
	const struct timespec none = {0, 0};
	unsigned char resident;
	int status;
	pid_t child;

	map_direct(0);
	store(0, 1);
	child = fork();
	if (!child) {
		bool gone = mincore(addr, 4096, &resident) && errno == ENOMEM;

		nanosleep(&none, NULL);
		gone = gone && rpmirror_touch(m, addr, 1) == RPMIRROR_E_INVAL;
		_exit(gone ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	store(MIRROR_EXTENT, 2);
	assert_int_equal(flush(MIRROR_EXTENT, 8), 0);
}

static void test_a_mapping_is_direct_or_something_else(void **state)
{
	void *at;
	size_t len;

	assert_int_equal(rpmirror_map(STANDIN_SET, NULL,
				      RPMIRROR_MAP_DIRECT | RPMIRROR_MAP_ISOLATED, &m, &at, &len),
			 RPMIRROR_E_INVAL);
	assert_int_equal(
		rpmirror_map(STANDIN_SET, NULL,
			     RPMIRROR_MAP_DIRECT | RPMIRROR_MAP_READONLY | RPMIRROR_MAP_STALE_OK,
			     &m, &at, &len),
		RPMIRROR_E_INVAL);
	assert_int_equal(rpmirror_map(STANDIN_SET, NULL,
				      RPMIRROR_MAP_FENCED_ERROR | RPMIRROR_MAP_FENCED_KILL, &m, &at,
				      &len),
			 RPMIRROR_E_INVAL);
	assert_null(m);
}

#define DIRECT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

/*
 * A resync copies stores that were not flushed, and that the other members lack. The member that
 * joined keeps records of these stores until every member has them.
 */
static void test_data_of_a_resync_are_flushed_to_all_members(void **state)
{
	unsigned retired;

	map_direct(0);
	standin_cut(s, 2);
	store(MIRROR_EXTENT, 1);
	assert_int_equal(flush(MIRROR_EXTENT, 8), 0);
	await_insync(3);
	/* the touched range stays writable */
	assert_int_equal(rpmirror_touch(m, addr + MIRROR_EXTENT, 64), 0);
	store(MIRROR_EXTENT + 8, 2); /* this block is one that the resync has to copy */
	assert_int_equal(copy_word(1, MIRROR_EXTENT + 8), 0);
	retired = standin_asked(s, 2, MESSAGE_RETIRE);
	standin_mend(s, 2);
	await_insync(7);
	assert_int_equal(copy_word(2, MIRROR_EXTENT + 8), 2);
	assert_true(standin_asked(s, 2, MESSAGE_RECORD_RANGES) > 0);
	for (int waited = 0; waited < PATIENCE_MS && standin_asked(s, 2, MESSAGE_RETIRE) == retired;
	     waited++)
		usleep(1000);
	assert_true(standin_asked(s, 2, MESSAGE_RETIRE) > retired);
	assert_int_equal(copy_word(1, MIRROR_EXTENT + 8), 2);
}

static int setup_going_on(void **state)
{
	setup(state);
	standin_set_local_error_continues(s);
	return 0;
}

/* The mapping shows the medium's content, which may be older than the flushed bytes, so no flush
 * may succeed. */
static void test_no_flush_succeeds_when_the_own_copy_has_failed(void **state)
{
	map_direct(0);
	store(0, 1);
	assert_int_equal(flush(0, 8), 0);
	pthread_mutex_lock(&m->lock);
	set_local_failed(m, m->flush.begun + 1, -EIO);
	pthread_mutex_unlock(&m->lock);
	store(8, 2);
	assert_int_equal(flush(0, 16), RPMIRROR_E_MEDIUM);
	await_insync(6);
	assert_int_equal(copy_word(1, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIRECT(test_stores_are_in_the_file_at_once),
		DIRECT(test_what_differs_is_recorded_before),
		DIRECT(test_a_clean_end_leaves_equal_copies),
		DIRECT(test_stores_across_extents),
		DIRECT(test_threads_store_and_flush_at_once),
		DIRECT(test_sync_of_all_is_of_what_was_stored),
		DIRECT(test_the_kernel_stores_to_what_was_touched),
		DIRECT(test_no_more_is_touched_than_there_are_slots),
		DIRECT(test_the_applications_handler_gets_the_others),
#ifdef __x86_64__
		DIRECT(test_a_jump_into_the_mapping_is_no_store),
#endif
		DIRECT(test_data_of_a_resync_are_flushed_to_all_members),
		cmocka_unit_test_setup_teardown(test_no_flush_succeeds_when_the_own_copy_has_failed,
						setup_going_on, teardown),
		DIRECT(test_a_fenced_primary_faults),
		DIRECT(test_a_fenced_primary_stores_to_no_file),
		cmocka_unit_test_setup_teardown(test_a_lease_that_returns_opens_what_was_open,
						setup_short_lease, teardown),
		cmocka_unit_test_setup_teardown(test_a_store_waits_for_a_slot, setup_blocking,
						teardown),
		DIRECT(test_a_child_has_no_mapping),
		cmocka_unit_test_setup_teardown(test_a_mapping_is_direct_or_something_else, setup,
						teardown),
	};

	setenv("RPMIRROR_ON_FENCED", "error", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
