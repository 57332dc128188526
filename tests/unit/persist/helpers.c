/* SPDX-License-Identifier: BSD-3-Clause */
#include "helpers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"

int file_create(const char *name, size_t size)
{
	char made[] = "persist-test-XXXXXX";
	int fd = name ? open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
		      : mkostemp(made, O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (!name)
		assert_int_equal(unlink(made), 0);
	return fd;
}

unsigned char *map_file(int fd, size_t size)
{
	unsigned char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

unsigned char *map_anonymous(size_t size)
{
	unsigned char *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

bool here_is_persistent(void)
{
	struct statfs fs;

	assert_int_equal(statfs(".", &fs), 0);
	return fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC;
}

struct persist_region *region_of(void *addr, size_t len)
{
	struct persist_region *region = NULL;

	assert_int_equal(persist_region_new(addr, len, &region), 0);
	assert_non_null(region);
	return region;
}

void backed_init(struct backed *m, const char *name, size_t size)
{
	m->fd = file_create(name, size);
	m->size = size;
	m->p = map_file(m->fd, size);
	m->region = region_of(m->p, size);
	for (size_t i = 0; i < size; i += 61)
		m->p[i] = (unsigned char)(i * 7 + 1);
}

void backed_fini(struct backed *m)
{
	persist_region_put(m->region);
	munmap(m->p, m->size);
	close(m->fd);
}

static void on_done(struct persist_job *job, int status)
{
	struct flush *f = container_of(job, struct flush, job);

	f->status = status;
	sem_post(&f->ended);
}

void flush_start(struct flush *f, struct persist_region *region, void *addr, size_t len)
{
	int status;

	f->job = (struct persist_job){.region = region, .addr = addr, .len = len, .done = on_done};
	sem_init(&f->ended, 0, 0);
	if (persist_submit(&f->job, &status))
		on_done(&f->job, status);
}

void flush_start_here(struct flush *f, struct persist_region *region, void *addr, size_t len,
		      bool *here)
{
	int status;

	f->job = (struct persist_job){.region = region, .addr = addr, .len = len, .done = on_done};
	sem_init(&f->ended, 0, 0);
	if (persist_submit_here(&f->job, &status, here))
		on_done(&f->job, status);
}

int flush_wait(struct flush *f, int timeout_ms)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	until.tv_sec += timeout_ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (sem_timedwait(&f->ended, &until) < 0)
		if (errno != EINTR)
			return -errno;
	return f->status;
}

int flush(struct persist_region *region, void *addr, size_t len)
{
	struct flush f;

	flush_start(&f, region, addr, len);
	return flush_wait(&f, 20000);
}

void digest_start(struct flush *f, struct persist_region *region, void *addr, size_t len,
		  uint32_t alg, struct vext_digest *d)
{
	int status;

	f->job = (struct persist_job){.region = region,
				      .addr = addr,
				      .len = len,
				      .want = PERSIST_DIGEST,
				      .alg = alg,
				      .digest = d,
				      .done = on_done};
	sem_init(&f->ended, 0, 0);
	if (persist_submit(&f->job, &status))
		on_done(&f->job, status);
}

int digest(struct persist_region *region, void *addr, size_t len, uint32_t alg,
	   struct vext_digest *d)
{
	struct flush f;

	memset(d, 0xff, sizeof(*d));
	digest_start(&f, region, addr, len, alg, d);
	return flush_wait(&f, 20000);
}

void assert_digest(const struct vext_digest *d, uint32_t alg, enum vext_digest_source source,
		   const void *bytes, size_t len)
{
	uint8_t want[DIGEST_BYTES];
	struct digest sum;

	digest_init(&sum, alg == VEXT_DIGEST_BLAKE2B);
	digest_update(&sum, bytes, len);
	digest_final(&sum, want);
	assert_int_equal(d->alg, alg);
	assert_int_equal(d->len, len);
	assert_int_equal(d->source, source);
	assert_memory_equal(d->bytes, want, sizeof(want));
}

void need_threads_after_fork(void)
{
#if defined(__SANITIZE_THREAD__)
	skip();
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
	skip();
#endif
#endif
}

pid_t persist_fork(void)
{
	pid_t pid;

	persist_atfork_prepare();
	pid = fork();
	if (pid == 0)
		persist_atfork_child();
	else
		persist_atfork_parent();
	return pid;
}

static int run_in_child(int (*fn)(void *arg), void *arg, bool privileged)
{
	alarm(30);
	if (!privileged && geteuid() == 0 &&
	    (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
	     setresuid(65534, 65534, 65534) || prctl(PR_SET_DUMPABLE, 1)))
		return __LINE__;
	return fn(arg);
}

/* The child sends the number of the failed line through a pipe, because it may exceed an exit
 * status. */
int in_child(int (*fn)(void *arg), void *arg, bool privileged)
{
	int result = -1, ends[2];
	pid_t pid;

	need_threads_after_fork();
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = persist_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		result = run_in_child(fn, arg, privileged);
		_exit(write(ends[1], &result, sizeof(result)) < 0);
	}
	close(ends[1]);
	if (read(ends[0], &result, sizeof(result)) < 0)
		result = -1;
	close(ends[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return result;
}

long dirty_kib(const void *addr)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	long shared_kib, private_kib, sum = 0;
	bool inside = false;
	char line[512];

	assert_non_null(smaps);
	while (fgets(line, sizeof(line), smaps)) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from == (uintptr_t)addr;
		if (inside && sscanf(line, "Shared_Dirty: %ld", &shared_kib) == 1)
			sum += shared_kib;
		if (inside && sscanf(line, "Private_Dirty: %ld", &private_kib) == 1)
			sum += private_kib;
	}
	fclose(smaps);
	return sum;
}

int threads_named(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int n = 0;

	assert_non_null(tasks);
	while ((task = readdir(tasks))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strncmp(comm, name, strlen(name)))
			n++;
		fclose(f);
	}
	closedir(tasks);
	return n;
}

void fake_dax_init(struct fake_dax *d, void *addr, size_t len)
{
	*d = (struct fake_dax){.file = {.medium = {.cls = VEXT_DURABILITY_DAX, .fd = -1}}};
	file_reset_queues(&d->file);
	d->range = (struct range){.start = (uintptr_t)addr,
				  .end = (uintptr_t)addr + len,
				  .cls = VEXT_DURABILITY_DAX,
				  .file = &d->file};
	d->region = (struct persist_region){.start = d->range.start, .end = d->range.end};
	d->region.count = 1;
	d->region.ranges = &d->range;
}
