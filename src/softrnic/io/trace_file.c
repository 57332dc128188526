/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/trace_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "softrnic/trace/pcapng.h"

#define INTERFACE_NAME "softrnic0"
#define WRITER         "softrnic " SOFTRNIC_VERSION
/* lower descriptors may be written to as standard streams, so the file does not use them */
#define FIRST_FD 3

static struct {
	enum { UNTRIED, OPEN, STOPPED } state;
	int fd;
	uint64_t written;
	char path[PATH_MAX];
} file = {.fd = -1};

/* Replace %p in the name by the id of the process. */
static int trace_file_expand(const char *name, char *path, size_t size)
{
	size_t n = 0;

	for (; *name && n < size; name++) {
		if (name[0] == '%' && name[1] == 'p') {
			n += (size_t)snprintf(path + n, size - n, "%d", (int)getpid());
			name++;
		} else {
			path[n++] = *name;
		}
	}
	if (n >= size)
		return -ENAMETOOLONG;
	path[n] = '\0';
	return 0;
}

/* Can an existing file be used? It must be a capture that the same user made: not a file that
 * another user made in order to read the trace, and not one that was named by mistake. Returns
 * NULL, or the reason against the file. */
static const char *trace_file_objection(int fd)
{
	uint8_t first[PCAPNG_MAGIC_LEN];
	struct stat st;

	if (fstat(fd, &st))
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is not a regular file";
	if (st.st_uid != geteuid())
		return "it belongs to another user";
	if (st.st_size == 0)
		return NULL;
	if (pread(fd, first, sizeof(first), 0) == sizeof(first) && pcapng_is_section(first))
		return NULL;
	return "it exists and is not a pcapng file";
}

static int trace_file_open_high(const char *path)
{
	/* Without O_NONBLOCK an open of a FIFO would wait. */
	int fd = open(path,
		      O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
		      S_IRUSR | S_IWUSR);
	int higher;

	if (fd < 0 || fd >= FIRST_FD)
		return fd;
	higher = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
	close(fd);
	return higher;
}

static const char *trace_file_try(const char *name)
{
	const char *why;
	int ret = trace_file_expand(name, file.path, sizeof(file.path)), fd;

	if (ret)
		return strerror(-ret);
	fd = trace_file_open_high(file.path);
	if (fd < 0)
		return strerror(errno);
	why = trace_file_objection(fd);
	if (why) {
		close(fd);
		return why;
	}
	file.fd = fd;
	return NULL;
}

static void trace_file_stop(void)
{
	close(file.fd);
	file.fd = -1;
	file.state = STOPPED;
}

/* Write without exceeding the limit on file sizes: the kernel would send SIGXFSZ, which would end a
 * program that never wrote such a large file itself. */
static ssize_t trace_file_write(const uint8_t *bytes, size_t len)
{
	static const struct timespec at_once;
	sigset_t xfsz, old, pending;
	ssize_t n;
	int err;

	sigemptyset(&xfsz);
	sigaddset(&xfsz, SIGXFSZ);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &xfsz, &old);
	n = write(file.fd, bytes, len);
	err = errno;
	if (n < 0 && err == EFBIG && !sigismember(&pending, SIGXFSZ))
		sigtimedwait(&xfsz, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = err;
	return n;
}

/* Remove an incompletely written block, because it would hide later blocks of other processes. If
 * other processes have already appended blocks, the incomplete block stays. */
static void trace_file_take_back(size_t written)
{
	off_t end = lseek(file.fd, 0, SEEK_CUR);
	struct stat st;

	if (written && !fstat(file.fd, &st) && st.st_size == end &&
	    ftruncate(file.fd, end - (off_t)written))
		LOG_ERROR("%s ends inside a packet: %m", file.path);
}

/* A short write sets no errno; an attempt to write the rest sets one. */
static int trace_file_append_all(const uint8_t *block, size_t len)
{
	size_t done = 0;
	int err;

	while (done < len) {
		ssize_t n = trace_file_write(block + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			err = n ? errno : EIO;
			trace_file_take_back(done);
			return err;
		}
		done += (size_t)n;
	}
	return 0;
}

void trace_file_append(const void *block, size_t len, uint64_t limit)
{
	int err;

	if (file.state != OPEN)
		return;
	if (limit && file.written + len > limit) {
		LOG_WARNING("tracing stops: SOFTRNIC_TRACE_BYTES are written to %s", file.path);
		trace_file_stop();
		return;
	}
	err = trace_file_append_all(block, len);
	file.written += len;
	if (!err)
		return;
	LOG_ERROR("tracing stops, the connections go on: writing to %s: %s", file.path,
		  strerror(err));
	trace_file_stop();
}

bool trace_file_open(const char *name)
{
	uint8_t section[PCAPNG_SECTION_MAX];
	const char *why;
	size_t len;

	if (file.state != UNTRIED)
		return file.state == OPEN;
	why = trace_file_try(name);
	if (why) {
		LOG_ERROR("no connection is traced: SOFTRNIC_TRACE=%s: %s", name, why);
		file.state = STOPPED;
		return false;
	}
	file.state = OPEN;
	len = pcapng_encode_section(section, sizeof(section), WRITER, INTERFACE_NAME);
	trace_file_append(section, len, 0);
	if (file.state == OPEN)
		LOG_NOTICE("connections are traced to %s", file.path);
	return file.state == OPEN;
}

bool trace_file_is_open(void)
{
	return file.state == OPEN;
}

/* Lock the key. Each key is one byte far beyond the file's end. */
static int trace_file_lock(uint64_t key, short type)
{
	struct flock lock = {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)(key >> 1 | 1ull << 62),
		.l_len = 1,
	};

	return fcntl(file.fd, F_OFD_SETLK, &lock) ? errno : 0;
}

/* If locks are not possible, both ends write the connection, which is better than no trace. */
bool trace_file_claim(uint64_t key)
{
	int err = trace_file_lock(key, F_WRLCK);

	return err != EAGAIN && err != EACCES;
}

void trace_file_unclaim(uint64_t key)
{
	if (file.state == OPEN)
		trace_file_lock(key, F_UNLCK);
}

/* In a forked child: closing its copy of the descriptor does not release the parent's locks. */
void trace_file_forked(void)
{
	if (file.fd >= 0)
		close(file.fd);
	file.fd = -1;
	file.written = 0;
	if (file.state == OPEN)
		file.state = UNTRIED;
}
