/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/persist/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softrnic/persist/apart.h"
#include "softrnic/persist/reopen.h"

#define ALIGN_MAX    ((size_t)64 << 10)
#define BUFFER_BYTES (READER_BYTES + 2 * ALIGN_MAX) /* a range widened at both ends */

struct reader {
	unsigned char *buffer;
	bool has_thread;
	pthread_t thread;
	sem_t asked, answered;
	bool stop;

	const struct file *file;
	bool sync; /* and do not read */
	uint64_t offset;
	size_t len;
	const void *bytes;
	enum vext_digest_source source;
	int result;
};

/* Of length and offset; 0: this file is not read directly, whatever open() says to O_DIRECT.
 * *told: the file system knows STATX_DIOALIGN. */
static size_t direct_align(int fd, bool *told)
{
	struct statx st = {0};

	*told = !statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) &&
		(st.stx_mask & STATX_DIOALIGN);
	if (*told)
		return st.stx_dio_offset_align > st.stx_dio_mem_align ? st.stx_dio_offset_align
								      : st.stx_dio_mem_align;
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* How many bytes there are, which are fewer at the end of the file; or -errno. */
static ssize_t read_all(int fd, unsigned char *buf, size_t len, uint64_t offset, size_t align)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, buf + got, len - got, (off_t)(offset + got));

		if (n < 0)
			return -errno;
		got += (size_t)n;
		if (n == 0 || got % align)
			break;
	}
	return (ssize_t)got;
}

static int read_aligned(struct reader *rd, int fd, size_t align)
{
	uint64_t from = rd->offset & ~((uint64_t)align - 1);
	uint64_t to = (rd->offset + rd->len + align - 1) & ~((uint64_t)align - 1);
	size_t head = (size_t)(rd->offset - from);
	ssize_t n = read_all(fd, rd->buffer, (size_t)(to - from), from, align);

	if (n < 0)
		return (int)n;
	rd->bytes = rd->buffer + head;
	return (size_t)n < head + rd->len ? -EFAULT : 0;
}

/* Where nobody tells, O_DIRECT may be no more than a hint: ZFS had its own cache answer, and btrfs
 * reads what it compressed through the page cache. */
static enum vext_digest_source source_of_direct(const struct file *f, bool told)
{
	return !f->served && (told || f->direct) ? VEXT_DIGEST_FROM_MEDIUM : VEXT_DIGEST_FROM_CACHE;
}

static int read_directly(struct reader *rd, int fd)
{
	bool told;
	size_t align = direct_align(fd, &told);

	if (!align || align > ALIGN_MAX || fcntl(fd, F_SETFL, O_DIRECT) < 0)
		return -EINVAL;
	rd->source = source_of_direct(rd->file, told);
	return read_aligned(rd, fd, align);
}

static int read_open_file(struct reader *rd, int fd)
{
	int ret = read_directly(rd, fd);

	if (ret != -EINVAL)
		return ret;
	if (fcntl(fd, F_SETFL, 0) < 0)
		return READER_NO_WAY;
	rd->source = VEXT_DIGEST_FROM_CACHE;
	return read_aligned(rd, fd, 1);
}

static int answer(struct reader *rd)
{
	struct stat st;
	int fd = reopen_again(rd->file->fd, O_RDONLY, rd->file->st_dev, rd->file->st_ino, &st);
	int ret;

	if (fd < 0)
		return READER_NO_WAY;
	if (rd->sync)
		ret = fdatasync(fd) ? -errno : 0;
	else
		ret = read_open_file(rd, fd);
	close(fd);
	return ret;
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) < 0)
		;
}

static void *run_thread(void *arg)
{
	struct reader *rd = arg;
	bool apart = apart_enter("rpma-read");

	for (;;) {
		wait_for(&rd->asked);
		if (rd->stop)
			return NULL;
		rd->result = apart ? answer(rd) : READER_NO_WAY;
		sem_post(&rd->answered);
	}
}

static bool start_thread(struct reader *rd)
{
	if (!rd->has_thread)
		rd->has_thread = !apart_start(&rd->thread, run_thread, rd);
	return rd->has_thread;
}

/* All in one mapping, which the child of a fork() has not: there the thread is gone as well. */
struct reader *reader_new(void)
{
	size_t size = BUFFER_BYTES + sizeof(struct reader);
	unsigned char *p =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct reader *rd;

	if (p == MAP_FAILED)
		return NULL;
	rd = (struct reader *)(p + BUFFER_BYTES);
	madvise(p, size, MADV_DONTFORK);
	rd->buffer = p;
	sem_init(&rd->asked, 0, 0);
	sem_init(&rd->answered, 0, 0);
	return rd;
}

void reader_delete(struct reader *rd)
{
	if (!rd)
		return;
	if (rd->has_thread) {
		rd->stop = true;
		sem_post(&rd->asked);
		pthread_join(rd->thread, NULL);
	}
	sem_destroy(&rd->asked);
	sem_destroy(&rd->answered);
	munmap(rd->buffer, BUFFER_BYTES + sizeof(*rd));
}

void *reader_buffer(struct reader *rd)
{
	return rd->buffer;
}

static int ask(struct reader *rd, const struct file *file, bool sync)
{
	if (file->fd < 0 || !start_thread(rd))
		return READER_NO_WAY;
	rd->file = file;
	rd->sync = sync;
	sem_post(&rd->asked);
	wait_for(&rd->answered);
	return rd->result;
}

int reader_sync(struct reader *rd, const struct file *file)
{
	return ask(rd, file, true);
}

int reader_read(struct reader *rd, const struct file *file, uint64_t offset, size_t len,
		const void **bytes, enum vext_digest_source *source)
{
	int ret;

	rd->offset = offset;
	rd->len = len;
	ret = ask(rd, file, false);
	if (ret == READER_NO_WAY)
		return READER_NO_WAY;
	*bytes = rd->bytes;
	*source = rd->source;
	return ret;
}
