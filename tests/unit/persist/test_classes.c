/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "helpers.h"
#include "softrnic/persist/procfs.h"
#include "softrnic/persist/region.h"

/* Check the class of the whole range, and that the explanation names the class and the medium. */
static void assert_class(void *addr, size_t len, enum vext_durability cls, const char *word)
{
	static const char *const names[] = {[VEXT_DURABILITY_VOLATILE] = "volatile: ",
					    [VEXT_DURABILITY_FILE] = "file: ",
					    [VEXT_DURABILITY_DAX] = "dax: "};
	struct persist_region *region = region_of(addr, len);
	enum vext_durability found;
	char why[256] = "";

	assert_int_equal(persist_region_class(region, addr, len), cls);
	if (!strstr(region->why, names[cls]) || !strstr(region->why, word))
		fail_msg("\"%s\" lacks \"%s\" or \"%s\"", region->why, names[cls], word);
	persist_region_put(region);
	assert_int_equal(persist_classify(addr, len, &found, why, sizeof(why)), 0);
	assert_int_equal(found, cls);
	assert_non_null(strstr(why, word));
}

static void anonymous_memory_is_volatile(void **state)
{
	void *p = map_anonymous(4 * PAGE);
	int on_stack;

	assert_class(p, 4 * PAGE, VEXT_DURABILITY_VOLATILE, "anonymous");
	assert_class(&on_stack, sizeof(on_stack), VEXT_DURABILITY_VOLATILE, "anonymous");
	munmap(p, 4 * PAGE);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_class(p, PAGE, VEXT_DURABILITY_VOLATILE, "/dev/zero");
	munmap(p, PAGE);
}

static void a_private_mapping_is_volatile_whatever_its_file(void **state)
{
	int fd = file_create(NULL, PAGE);
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);

	assert_class(p, PAGE, VEXT_DURABILITY_VOLATILE, "private mapping");
	munmap(p, PAGE);
	close(fd);
}

static void assert_volatile_fd(int fd, size_t size, int flags, const char *word)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_class(p, size, VEXT_DURABILITY_VOLATILE, word);
	munmap(p, size);
	close(fd);
}

static void shared_memory_of_the_kernel_is_volatile(void **state)
{
	int id = shmget(IPC_PRIVATE, PAGE, 0600);
	int memfd = memfd_create("x", MFD_CLOEXEC);
	void *p;

	assert_int_equal(ftruncate(memfd, (off_t)PAGE), 0);
	assert_volatile_fd(memfd, PAGE, 0, "memfd:x");
	assert_volatile_fd(open("/dev/zero", O_RDWR | O_CLOEXEC), PAGE, 0, "/dev/zero");
	assert_true(id >= 0);
	p = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	assert_class(p, PAGE, VEXT_DURABILITY_VOLATILE, "SYSV");
	shmdt(p);
}

static void files_in_dev_shm_are_volatile_even_when_unlinked(void **state)
{
	char name[] = "/dev/shm/persist-test-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	if (fd < 0)
		skip();
	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	assert_volatile_fd(dup(fd), PAGE, 0, "tmpfs");
	unlink(name);
	assert_volatile_fd(fd, PAGE, 0, "tmpfs");
}

static void huge_pages_are_volatile(void **state)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);

	if (fd < 0)
		skip();
	/* The memory is never touched, because the machine may have no huge page. */
	assert_volatile_fd(fd, 2 * MIB, MAP_NORESERVE, "huge");
}

static void secret_memory_is_volatile(void **state)
{
	int fd = (int)syscall(SYS_memfd_secret, O_CLOEXEC);

	if (fd < 0)
		skip(); /* the kernel lacks the feature, or has it disabled */
	assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
	assert_volatile_fd(fd, PAGE, 0, "secretmem");
}

static void a_file_on_a_disk_is_of_class_file(void **state)
{
	int fd = file_create("on-disk", 10 * PAGE);
	unsigned char *p = map_file(fd, 10 * PAGE);

	if (!here_is_persistent())
		skip();
	assert_class(p, 10 * PAGE, VEXT_DURABILITY_FILE, "on-disk");
	assert_class(p + 5000, 1, VEXT_DURABILITY_FILE, "on-disk");
	unlink("on-disk");
	assert_class(p, 10 * PAGE, VEXT_DURABILITY_FILE, "(deleted)");
	munmap(p, 10 * PAGE);
	close(fd);
}

/* If the memory was classed as volatile by mistake, flushes would report success without a
 * write-back. */
static void without_a_spare_descriptor_no_class_is_guessed(void **state)
{
	struct rlimit limit, tight;
	unsigned char *p;
	int fd, lowest;

	if (!here_is_persistent())
		skip();
	/* Close descriptors that the parent left open, so that the spare numbers are the lowest
	 * free ones. */
	close_range(STDERR_FILENO + 1, ~0u, 0);
	fd = file_create(NULL, PAGE);
	lowest = fd + 1;
	p = map_file(fd, PAGE);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (rlim_t spare = 0; spare < 4; spare++) {
		struct persist_region *region = NULL;
		int r;

		tight = (struct rlimit){(rlim_t)lowest + spare, limit.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
		r = persist_region_new(p, PAGE, &region);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
		if (r)
			assert_int_equal(r, -EMFILE);
		else
			assert_int_equal(persist_region_class(region, p, PAGE),
					 VEXT_DURABILITY_FILE);
		/* The region needs one descriptor to read the list of mappings. */
		assert_int_equal(!r, spare > 1);
		persist_region_put(region);
	}
	munmap(p, PAGE);
	close(fd);
}

static void a_strange_file_name_is_no_obstacle(void **state)
{
	static const char name[] = "a \n\\012b (deleted)";
	int fd = file_create(name, 100);
	unsigned char *p = map_file(fd, PAGE);
	struct persist_region *region;

	if (!here_is_persistent())
		skip();
	region = region_of(p, PAGE);
	assert_true(region->ranges[0].file->medium.fd >= 0);
	persist_region_put(region);
	unlink(name);
	munmap(p, PAGE);
	close(fd);
}

static bool can_stall(void *addr, size_t len)
{
	struct persist_region *region = region_of(addr, len);
	bool stalls = persist_region_can_stall(region);

	persist_region_put(region);
	return stalls;
}

static bool fd_can_stall(int fd, int prot, int flags)
{
	void *p = mmap(NULL, 2 * MIB, prot, flags, fd, 0);
	bool stalls;

	assert_ptr_not_equal(p, MAP_FAILED);
	stalls = can_stall(p, 2 * MIB);
	munmap(p, 2 * MIB);
	return stalls;
}

static void shared_mappings_of_files_can_stall(void **state)
{
	int fd = file_create(NULL, 2 * MIB);
	unsigned char *p = map_anonymous(4 * PAGE);

	if (!here_is_persistent())
		skip();
	assert_true(fd_can_stall(fd, PROT_READ | PROT_WRITE, MAP_SHARED));
	assert_true(fd_can_stall(fd, PROT_READ, MAP_SHARED));
	assert_false(fd_can_stall(fd, PROT_READ | PROT_WRITE, MAP_PRIVATE));
	assert_false(can_stall(p, 4 * PAGE));
	mmap(p + 2 * PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	assert_true(can_stall(p, 4 * PAGE));
	munmap(p, 4 * PAGE);
	close(fd);
}

static void memory_alone_cannot_stall(void **state)
{
	int memfd = memfd_create("x", MFD_CLOEXEC), zero = open("/dev/zero", O_RDWR | O_CLOEXEC);

	assert_int_equal(ftruncate(memfd, (off_t)(2 * MIB)), 0);
	for (int shared = 0; shared < 2; shared++) {
		int flags = shared ? MAP_SHARED : MAP_PRIVATE;

		assert_false(fd_can_stall(-1, PROT_READ, flags | MAP_ANONYMOUS));
		assert_false(fd_can_stall(memfd, PROT_READ, flags));
		assert_false(fd_can_stall(zero, PROT_READ, flags));
	}
	close(memfd);
	close(zero);
}

static void a_counted_region_keeps_its_file(void **state)
{
	int fd = file_create(NULL, PAGE);
	unsigned char *p = map_file(fd, PAGE);
	struct persist_region *region = region_of(p, PAGE), *other;

	if (!here_is_persistent())
		skip();
	assert_ptr_equal(persist_region_get(region), region);
	persist_region_put(region);
	other = region_of(p, PAGE);
	assert_ptr_equal(other->ranges[0].file, region->ranges[0].file);
	persist_region_put(other);
	persist_region_put(region);
	munmap(p, PAGE);
	close(fd);
}

static void a_mixed_range_has_the_weakest_class(void **state)
{
	int fd = file_create(NULL, 8 * PAGE);
	unsigned char *p = map_anonymous(6 * PAGE);
	struct persist_region *region;

	if (!here_is_persistent())
		skip();
	/* The parts: a volatile page | two pages of a file in order | two pages of the file out of
	 * order. */
	mmap(p + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
	mmap(p + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)PAGE);
	mmap(p + 3 * PAGE, 2 * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)(4 * PAGE));
	region = region_of(p + 100, 6 * PAGE - 200);
	assert_int_equal(region->count, 4);
	assert_int_equal(persist_region_class(region, p + 100, 6 * PAGE - 200),
			 VEXT_DURABILITY_VOLATILE);
	assert_int_equal(persist_region_class(region, p + PAGE, 4 * PAGE), VEXT_DURABILITY_FILE);
	assert_int_equal(persist_region_class(region, p + PAGE - 1, 2), VEXT_DURABILITY_VOLATILE);
	assert_int_equal(persist_region_class(region, p + 4 * PAGE, PAGE + 1),
			 VEXT_DURABILITY_VOLATILE);
	assert_int_equal(region->ranges[2].offset, 4 * PAGE);
	assert_int_equal(region->ranges[2].file->refs, 2);
	persist_region_put(region);
	munmap(p, 6 * PAGE);
	close(fd);
}

static void a_range_with_a_gap_is_refused(void **state)
{
	unsigned char *p = map_anonymous(3 * PAGE);
	struct persist_region *region = NULL;

	munmap(p + PAGE, PAGE);
	assert_int_equal(persist_region_new(p, 3 * PAGE, &region), -EFAULT);
	assert_int_equal(persist_region_new(p + PAGE, PAGE, &region), -EFAULT);
	assert_int_equal(persist_region_new(p + PAGE, 2 * PAGE, &region), -EFAULT);
	assert_int_equal(persist_region_new(p, PAGE + 1, &region), -EFAULT);
	assert_int_equal(persist_region_new(p, SIZE_MAX, &region), -EFAULT);
	assert_null(region);
	munmap(p, PAGE);
	munmap(p + 2 * PAGE, PAGE);
}

struct seen {
	size_t n;
	struct vma vma[16];
	char path[16][128];
};

static int note(void *arg, const struct vma *vma)
{
	struct seen *s = arg;

	s->vma[s->n] = *vma;
	snprintf(s->path[s->n++], sizeof(s->path[0]), "%s", vma->path);
	return s->n == 16 ? -E2BIG : 0;
}

static void both_ways_to_ask_the_kernel_agree(void **state)
{
	int fd = file_create("two\nlines", 8 * PAGE);
	unsigned char *p = map_anonymous(8 * PAGE);
	struct seen a = {0}, b = {0};

	mmap(p + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)PAGE);
	mmap(p + 4 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
	munmap(p + 6 * PAGE, PAGE);
	unlink("two\nlines");
	assert_int_equal(vma_for_each((uintptr_t)p, (uintptr_t)p + 8 * PAGE, note, &a), 0);
	assert_int_equal(vma_for_each_text((uintptr_t)p, (uintptr_t)p + 8 * PAGE, note, &b), 0);
	assert_int_equal(a.n, 6);
	assert_int_equal(b.n, 6);
	for (size_t i = 0; i < a.n; i++) {
		assert_int_equal(a.vma[i].start, b.vma[i].start);
		assert_int_equal(a.vma[i].end, b.vma[i].end);
		assert_int_equal(a.vma[i].shared, b.vma[i].shared);
		assert_int_equal(a.vma[i].dev, b.vma[i].dev);
		assert_int_equal(a.vma[i].ino, b.vma[i].ino);
		assert_int_equal(a.vma[i].offset, b.vma[i].offset);
		assert_string_equal(a.path[i], b.path[i]);
	}
	assert_non_null(strstr(a.path[1], "two\nlines (deleted)"));
	munmap(p, 8 * PAGE);
	close(fd);
}

/*
 * The shortest time of many rounds. The compared calls alternate, because a busy machine slows all
 * of them.
 */
struct best {
	uint64_t mmap_ns, page_ns, gib_ns;
};

static void time_best(uint64_t *best_ns, void (*fn)(void *, size_t), void *addr, size_t len)
{
	uint64_t start = clock_now_ns(), took;

	fn(addr, len);
	took = clock_now_ns() - start;
	*best_ns = took < *best_ns ? took : *best_ns;
}

static void map_once(void *fd, size_t len)
{
	munmap(mmap(NULL, len, PROT_READ, MAP_SHARED, (int)(intptr_t)fd, 0), len);
}

static void register_once(void *addr, size_t len)
{
	persist_region_put(region_of(addr, len));
}

static struct best find_best(const char *what, int fd, void *page, void *gib, size_t len)
{
	struct best b = {UINT64_MAX, UINT64_MAX, UINT64_MAX};

	for (int i = 0; i < 30; i++) {
		time_best(&b.mmap_ns, map_once, (void *)(intptr_t)fd, len);
		time_best(&b.page_ns, register_once, page, PAGE);
		time_best(&b.gib_ns, register_once, gib, len);
	}
	print_message("%s: mmap+munmap %lu ns; region of 4 KiB %lu ns, of 1 GiB %lu ns\n", what,
		      b.mmap_ns, b.page_ns, b.gib_ns);
	assert_true(b.gib_ns < 4 * (b.page_ns + b.mmap_ns));
	return b;
}

static void a_gibibyte_is_classified_as_fast_as_a_page(void **state)
{
	const size_t len = 1024 * MIB;
	int fd = file_create("gibibyte", len);
	unsigned char *gib = map_file(fd, len), *page = map_file(fd, PAGE);
	struct persist_region *first;
	struct best known;

	memset(gib, 1, 16 * MIB);
	find_best("a file", fd, page, gib, len);
	first = region_of(page, PAGE);
	known = find_best("a known file", fd, page, gib, len);
	/*
	 * A walk of the kernel through all page tables takes a hundred times as long.
	 */
	assert_true(known.gib_ns < 30 * known.mmap_ns);
	persist_region_put(first);
	munmap(page, PAGE);
	munmap(gib, len);
	unlink("gibibyte");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(anonymous_memory_is_volatile),
		cmocka_unit_test(a_private_mapping_is_volatile_whatever_its_file),
		cmocka_unit_test(shared_memory_of_the_kernel_is_volatile),
		cmocka_unit_test(files_in_dev_shm_are_volatile_even_when_unlinked),
		cmocka_unit_test(huge_pages_are_volatile),
		cmocka_unit_test(secret_memory_is_volatile),
		cmocka_unit_test(a_file_on_a_disk_is_of_class_file),
		cmocka_unit_test(without_a_spare_descriptor_no_class_is_guessed),
		cmocka_unit_test(a_strange_file_name_is_no_obstacle),
		cmocka_unit_test(shared_mappings_of_files_can_stall),
		cmocka_unit_test(memory_alone_cannot_stall),
		cmocka_unit_test(a_counted_region_keeps_its_file),
		cmocka_unit_test(a_mixed_range_has_the_weakest_class),
		cmocka_unit_test(a_range_with_a_gap_is_refused),
		cmocka_unit_test(both_ways_to_ask_the_kernel_agree),
		cmocka_unit_test(a_gibibyte_is_classified_as_fast_as_a_page),
	};

	return cmocka_run_group_tests_name("persist-classes", tests, NULL, NULL);
}
