/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "source.h"

static int source_inspect(struct source *src)
{
	struct stat st;
	off_t from;

	if (src->fd < 0 || fstat(src->fd, &st))
		return cli_fail(CLI_FILE, "cannot open %s: %s", src->name, strerror(errno));
	if (S_ISDIR(st.st_mode))
		return cli_fail(CLI_FILE, "%s is a directory", src->name);
	/* If standard input is a file, begin at its present offset. */
	from = lseek(src->fd, 0, SEEK_CUR);
	/* Files of /proc report a size of 0. */
	src->is_sized = S_ISREG(st.st_mode) && from >= 0 && st.st_size > from;
	src->from = src->is_sized ? (uint64_t)from : 0;
	src->size = src->is_sized ? (uint64_t)(st.st_size - from) : 0;
	if (!S_ISREG(st.st_mode))
		clock_gettime(CLOCK_REALTIME, &st.st_mtim);
	src->time_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	return CLI_OK;
}

/* Refuse a standard input that cannot be read, before a connection is made. */
static int source_take_stdin(void)
{
	int flags = fcntl(STDIN_FILENO, F_GETFL);

	if (flags >= 0 && (flags & O_ACCMODE) != O_WRONLY)
		return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	errno = EBADF;
	return -1;
}

int source_open(struct source *src, const char *path)
{
	bool is_stdin = !strcmp(path, "-");

	*src = (struct source){.name = is_stdin ? "standard input" : path};
	src->fd = is_stdin ? source_take_stdin() : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return source_inspect(src);
}

void source_close(struct source *src)
{
	if (src->fd >= 0)
		close(src->fd);
	src->fd = -1;
}

/* Like read(2), but wait for bytes even if the descriptor is non-blocking. */
static ssize_t source_read_stream(struct source *src, uint8_t *buf, size_t len)
{
	struct pollfd pfd = {.fd = src->fd, .events = POLLIN};
	ssize_t n;

	while ((n = read(src->fd, buf, len)) < 0)
		if (errno == EAGAIN)
			poll(&pfd, 1, -1);
		else if (errno != EINTR)
			break;
	return n;
}

static ssize_t source_read_some(struct source *src, uint8_t *buf, size_t len, uint64_t at)
{
	ssize_t n;

	if (!src->is_sized)
		return source_read_stream(src, buf, len);
	do {
		n = pread(src->fd, buf, len, (off_t)(src->from + at));
	} while (n < 0 && errno == EINTR);
	return n;
}

int source_read(struct source *src, uint8_t *buf, uint64_t at, uint32_t *len)
{
	uint32_t got = 0;

	while (got < *len) {
		ssize_t n = source_read_some(src, buf + got, *len - got, at + got);

		if (n == 0 && !src->is_sized)
			break;
		/* The file may shrink during the read. The rest of the buffer would then be
		 * undefined. */
		if (n <= 0)
			return cli_fail(CLI_FILE, "cannot read %s at offset %" PRIu64 ": %s",
					src->name, at + got,
					n ? strerror(errno) : "the file became shorter");
		got += (uint32_t)n;
	}
	src->ended = got < *len;
	*len = got;
	return CLI_OK;
}

int source_has_more(struct source *src, bool *more)
{
	uint8_t byte;
	ssize_t n = source_read_stream(src, &byte, 1);

	*more = n > 0;
	src->ended = n == 0;
	return n < 0 ? cli_fail(CLI_FILE, "cannot read %s: %s", src->name, strerror(errno))
		     : CLI_OK;
}
