/* SPDX-License-Identifier: BSD-3-Clause */
/* The metadata of a copy in a real file: the file is made completely or not at all, is found again,
 * and is locked. */
#include "lib/mirror_copy.h"
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mirror/core/member.h"
#include "mirror/file/metafile.h"

#define SIZE (4u << 20)

static char dir[64], data[128], name[128];
static struct meta_super super;
static struct meta_members members;
static unsigned syncs;
static int sync_errno;

int __real_msync(void *addr, size_t len, int flags);
int __wrap_msync(void *addr, size_t len, int flags);
int __wrap_msync(void *addr, size_t len, int flags)
{
	syncs++;
	if (sync_errno) {
		errno = sync_errno;
		return -1;
	}
	return __real_msync(addr, len, flags);
}

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "metafile.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(data, sizeof(data), "%s/orders", dir);
	snprintf(name, sizeof(name), "%s/orders%s", dir, METAFILE_SUFFIX);
	copy_super(&super);
	copy_members(&members);
	super.size = SIZE;
	sync_errno = 0;
	return 0;
}

static int teardown(void **state)
{
	unlink(data);
	unlink(name);
	return rmdir(dir);
}

static int create(bool keep, struct error *err)
{
	struct metafile_new opts = {
		.data = data, .meta = name, .keep = keep, .super = &super, .members = &members};

	return metafile_create(&opts, err);
}

static void load(struct metafile *f, struct meta *m, enum metafile_mode mode)
{
	struct error err = {0};
	struct meta_store store;

	if (metafile_open(f, name, mode, &err))
		fail_msg("%s", err.text);
	store = metafile_store(f);
	if (meta_load(m, &store, &err))
		fail_msg("%s", err.text);
	assert_int_equal(m->damage, 0);
}

static void a_copy_is_made_and_found_again(void **state)
{
	struct metafile f;
	struct meta m;
	struct stat st;

	assert_int_equal(create(false, NULL), 0);
	assert_int_equal(stat(data, &st), 0);
	assert_int_equal(st.st_size, SIZE);
	assert_true(st.st_blocks * 512 >= SIZE);
	load(&f, &m, METAFILE_OWN);
	assert_int_equal(m.super.member_id, 0xa1);
	assert_int_equal(m.super.files.data_inode, st.st_ino);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(m.super.files.meta_inode, st.st_ino);
	assert_int_equal(st.st_size, meta_size_for(SIZE));
	meta_fini(&m);
	metafile_close(&f);
}

static void what_exists_is_not_overwritten(void **state)
{
	struct error err = {0};
	int fd;

	assert_int_equal(create(false, NULL), 0);
	assert_int_equal(create(true, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, EEXIST);
	unlink(name);
	assert_int_equal(create(false, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, EEXIST);
	fd = open(data, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "kept", 4, 0), 4);
	close(fd);
	assert_int_equal(create(true, NULL), 0);
	unlink(name);
	super.size = 2 * SIZE;
	assert_int_equal(create(true, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, EINVAL);
	assert_int_equal(access(name, F_OK), -1);
	assert_int_equal(access(data, F_OK), 0);
}

static void one_process_owns_it_and_others_may_look(void **state)
{
	struct metafile f, other, look;
	struct meta_store looked_store;
	struct error err = {0};
	struct meta m, looked;

	assert_int_equal(create(false, NULL), 0);
	load(&f, &m, METAFILE_OWN);
	assert_int_equal(metafile_open(&other, name, METAFILE_OWN, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, EWOULDBLOCK);
	load(&look, &looked, METAFILE_READ);
	looked_store = metafile_store(&look);
	assert_int_equal(looked_store.persist(looked_store.arg, 0, 8), -EROFS);
	meta_fini(&looked);
	metafile_close(&look);
	/* The library gets a descriptor of the file, and sees the bytes that the daemon writes. */
	assert_int_equal(metafile_attach(&other, open(name, O_RDWR | O_CLOEXEC), &err), 0);
	m.super.acked = 77;
	assert_int_equal(meta_set_super(&m, &m.super), 0);
	assert_memory_equal(f.addr, other.addr, META_RING_AT);
	metafile_close(&other);
	meta_fini(&m);
	metafile_close(&f);
}

static void each_setter_reaches_the_medium_of_its_class(void **state)
{
	uint32_t extent = 1;
	struct metafile f;
	struct meta m;
	bool is_file;

	assert_int_equal(create(false, NULL), 0);
	load(&f, &m, METAFILE_OWN);
	is_file = f.durability == RPMA_DURABILITY_FILE;
	syncs = 0;
	assert_int_equal(meta_hot_mark(&m, &extent, 1), 0);
	assert_int_equal(syncs, is_file ? 1 : 0);
	assert_int_equal(f.persists, 1);
	/* The change persists the slot, and then the mark that the slot is complete. */
	assert_int_equal(meta_set_promise(&m, &m.promise), 0);
	assert_int_equal(f.persists, 3);
	sync_errno = EIO;
	assert_int_equal(meta_set_promise(&m, &m.promise), is_file ? -EIO : 0);
	sync_errno = 0;
	assert_int_equal(meta_set_promise(&m, &m.promise), is_file ? -EIO : 0);
	meta_fini(&m);
	metafile_close(&f);
}

static void what_is_no_metadata_is_refused(void **state)
{
	struct error err = {0};
	struct metafile f;
	int fd;

	assert_int_equal(metafile_open(&f, name, METAFILE_READ, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, ENOENT);
	assert_int_equal(metafile_open(&f, dir, METAFILE_READ, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, ENODATA);
	fd = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	assert_int_equal(metafile_open(&f, name, METAFILE_OWN, &err), ERROR_LOCAL);
	assert_int_equal(err.cause, ENODATA);
	close(fd);
}

/* The files were copied to another folder, or swapped with the files of another copy. */
static void other_files_than_it_was_made_for_are_compared(void **state)
{
	struct mirror_uuid boot = copy_uuid(1);
	struct member_report report;
	struct member_verdict v;
	struct meta_files files;
	struct metafile f;
	struct member member;
	struct meta m;

	assert_int_equal(create(false, NULL), 0);
	load(&f, &m, METAFILE_OWN);
	assert_int_equal(member_init(&member, &m, &boot), 0);
	files = m.super.files;
	member_set_files(&member, &files, &v);
	assert_int_equal(member_report(&member, &report), 0);
	assert_false(report.is_uncertain);
	files.data_inode++;
	member_set_files(&member, &files, &v);
	assert_int_equal(v.answer, MEMBER_YES);
	assert_int_equal(member_report(&member, &report), 0);
	assert_true(report.is_uncertain);
	assert_int_equal(report.copy, MIRROR_COPY_SYNCING);
	assert_false(report.flags & META_CLEAN);
	member_fini(&member);
	meta_fini(&m);
	metafile_close(&f);
}

/* The file's time differs from the recorded time. The time is recorded whenever the daemon exits in
 * good order, and a file that was restored in place has another time. */
static void a_file_that_was_changed_since_it_was_left_is_compared(void **state)
{
	struct mirror_uuid boot = copy_uuid(1);
	struct member_report report;
	struct member_verdict v;
	struct meta_files files;
	struct metafile f;
	struct member member;
	struct meta m;

	assert_int_equal(create(false, NULL), 0);
	load(&f, &m, METAFILE_OWN);
	assert_int_equal(member_init(&member, &m, &boot), 0);
	files = m.super.files;
	for (unsigned i = 0; i < 3; i++) {
		files.data_time_ns = 1000 + i;
		/* the daemon did not exit in good order before */
		member_set_files(&member, &files, &v);
		files.data_time_ns += 10;
		member_leave_files(&member, &files, &v);
		member_set_files(&member, &files, &v);
		assert_int_equal(v.answer, MEMBER_YES);
		assert_int_equal(member_report(&member, &report), 0);
		assert_false(report.is_uncertain);
	}
	member_leave_files(&member, &files, &v);
	files.data_time_ns--;
	member_set_files(&member, &files, &v);
	assert_int_equal(member_report(&member, &report), 0);
	assert_int_equal(report.copy, MIRROR_COPY_SYNCING);
	assert_true(report.is_uncertain);
	member_fini(&member);
	meta_fini(&m);
	metafile_close(&f);
}

/* ---- killed ---- */

static void child_create(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	raise(SIGSTOP);
	_exit(create(false, NULL) ? 1 : 0);
}

/* Returns true if the child was killed before its n-th system call, false if it ended before that
 * call. */
static bool kill_at(unsigned n)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child)
		child_create();
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 77);
		skip();
	}
	for (unsigned stops = 0; WIFSTOPPED(status) && stops < 2 * n - 1; stops++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	if (WIFEXITED(status)) {
		assert_int_equal(WEXITSTATUS(status), 0);
		return false;
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return true;
}

static void a_creation_that_is_killed_leaves_no_half_copy(void **state)
{
	unsigned n = 1, whole = 0;

	for (; kill_at(n); n++) {
		struct metafile f;
		struct meta m;

		if (!access(name, F_OK)) {
			load(&f, &m, METAFILE_OWN); /* the file is complete */
			assert_int_equal(access(data, F_OK), 0);
			meta_fini(&m);
			metafile_close(&f);
			whole++;
		}
		unlink(name);
		unlink(data);
	}
	assert_true(n > 10);
	assert_true(whole > 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_copy_is_made_and_found_again),
		TEST(what_exists_is_not_overwritten),
		TEST(one_process_owns_it_and_others_may_look),
		TEST(each_setter_reaches_the_medium_of_its_class),
		TEST(what_is_no_metadata_is_refused),
		TEST(other_files_than_it_was_made_for_are_compared),
		TEST(a_file_that_was_changed_since_it_was_left_is_compared),
		TEST(a_creation_that_is_killed_leaves_no_half_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
