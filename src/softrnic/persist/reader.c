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

#include "base/thread.h"
#include "softrnic/persist/procfs.h"

#define READER_STACK ((size_t)256 << 10)
#define ALIGN_MAX    ((size_t)64 << 10)
#define BUFFER_BYTES (READER_BYTES + 2 * ALIGN_MAX) /* room to align both ends of a range */

struct reader {
	unsigned char *buffer;
	bool has_thread;
	pthread_t thread;
	sem_t asked, answered;
	bool stop;

	const struct file *file;
	bool sync; /* true: write back the file; false: read it */
	uint64_t offset;
	size_t len;
	const void *bytes;
	enum vext_digest_source source;
	int result;
};

/* Returns the alignment that direct reads need for length and offset. Returns 0 if this file has no
 * direct reads, even though open() may accept O_DIRECT. *known is true if the file system reports
 * STATX_DIOALIGN. */
static size_t reader_direct_align(int fd, bool *known)
{
	struct statx st = {0};

	*known = !statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) &&
		 (st.stx_mask & STATX_DIOALIGN);
	if (*known)
		return st.stx_dio_offset_align > st.stx_dio_mem_align ? st.stx_dio_offset_align
								      : st.stx_dio_mem_align;
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns the number of bytes read, fewer at the end of the file; or -errno. */
static ssize_t reader_pread(int fd, unsigned char *buf, size_t len, uint64_t offset, size_t align)
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

static int reader_read_aligned(struct reader *rd, int fd, size_t align)
{
	uint64_t from = rd->offset & ~((uint64_t)align - 1);
	uint64_t to = (rd->offset + rd->len + align - 1) & ~((uint64_t)align - 1);
	size_t head = (size_t)(rd->offset - from);
	ssize_t n = reader_pread(fd, rd->buffer, (size_t)(to - from), from, align);

	if (n < 0)
		return (int)n;
	rd->bytes = rd->buffer + head;
	return (size_t)n < head + rd->len ? -EFAULT : 0;
}

static int reader_read_fd(struct reader *rd, int fd)
{
	bool known;
	size_t align = reader_direct_align(fd, &known);
	int ret = -EINVAL;

	if (align && align <= ALIGN_MAX && fcntl(fd, F_SETFL, O_DIRECT) >= 0) {
		/* On file systems without STATX_DIOALIGN, O_DIRECT may be only a hint: ZFS answered
		 * from its cache, and btrfs reads compressed files through the page cache. */
		rd->source = !rd->file->medium.remote && (known || rd->file->medium.direct)
				     ? VEXT_DIGEST_FROM_MEDIUM
				     : VEXT_DIGEST_FROM_CACHE;
		ret = reader_read_aligned(rd, fd, align);
	}
	if (ret != -EINVAL)
		return ret;
	if (fcntl(fd, F_SETFL, 0) < 0)
		return READER_NO_WAY;
	rd->source = VEXT_DIGEST_FROM_CACHE;
	return reader_read_aligned(rd, fd, 1);
}

static int reader_answer(struct reader *rd)
{
	const struct medium *m = &rd->file->medium;
	struct stat st;
	int fd = reopen_again(m->fd, O_RDONLY, m->st_dev, m->st_ino, &st);
	int ret;

	if (fd < 0)
		return READER_NO_WAY;
	if (rd->sync)
		ret = fdatasync(fd) ? -errno : 0;
	else
		ret = reader_read_fd(rd, fd);
	close(fd);
	return ret;
}

static void reader_wait(sem_t *sem)
{
	while (sem_wait(sem) < 0)
		;
}

static void *reader_thread(void *arg)
{
	struct reader *rd = arg;
	bool apart = thread_leave_descriptors();

	pthread_setname_np(pthread_self(), "rpma-read");
	for (;;) {
		reader_wait(&rd->asked);
		if (rd->stop)
			return NULL;
		rd->result = apart ? reader_answer(rd) : READER_NO_WAY;
		sem_post(&rd->answered);
	}
}

/* One memory mapping holds the whole reader. A forked child gets no copy of it, because the
 * reader's thread does not exist in the child. */
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

static int reader_ask(struct reader *rd, const struct file *file, bool sync)
{
	if (file->medium.fd < 0)
		return READER_NO_WAY;
	if (!rd->has_thread)
		rd->has_thread = !thread_start(&rd->thread, READER_STACK, reader_thread, rd);
	if (!rd->has_thread)
		return READER_NO_WAY;
	rd->file = file;
	rd->sync = sync;
	sem_post(&rd->asked);
	reader_wait(&rd->answered);
	return rd->result;
}

int reader_sync(struct reader *rd, const struct file *file)
{
	return reader_ask(rd, file, true);
}

int reader_read(struct reader *rd, const struct file *file, uint64_t offset, size_t len,
		const void **bytes, enum vext_digest_source *source)
{
	int ret;

	rd->offset = offset;
	rd->len = len;
	ret = reader_ask(rd, file, false);
	if (ret == READER_NO_WAY)
		return READER_NO_WAY;
	*bytes = rd->bytes;
	*source = rd->source;
	return ret;
}
