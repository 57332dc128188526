/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "attributes.h"
#include "cli.h"
#include "output.h"

static bool output_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int output_fail(const struct output *out, const char *what)
{
	return cli_fail(CLI_FILE, "cannot %s %s: %s", what, out->name, strerror(errno));
}

/* Direct all later text to standard error, so that standard output gets only data. */
static int output_take_stdout(struct output *out)
{
	out->name = "standard output";
	out->kind = OUTPUT_STREAM;
	out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (out->fd < 0 || fstat(out->fd, &out->st) || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return output_fail(out, "write to");
	return CLI_OK;
}

/* Returns true for "-", /dev/stdout or another name of standard output. A device does not count,
 * because several programs may write to a device at the same time. */
static bool output_is_stdout(const char *name)
{
	struct stat st, st_stdout;

	if (!strcmp(name, "-"))
		return true;
	return !stat(name, &st) && !fstat(STDOUT_FILENO, &st_stdout) &&
	       output_is_same(&st, &st_stdout) && !S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode);
}

static int output_open_missing(struct output *out)
{
	struct stat st;

	out->kind = OUTPUT_NEW;
	if (lstat(out->name, &st) || !S_ISLNK(st.st_mode))
		return CLI_OK;
	return cli_fail(CLI_FILE, "%s is a symbolic link to something that does not exist",
			out->name);
}

int output_open(struct output *out, const char *name)
{
	memset(out, 0, sizeof(*out));
	*out = (struct output){.name = name, .fd = -1, .made.fd = -1};
	signal(SIGPIPE, SIG_IGN); /* report a closed pipe as an ordinary error */
	if (output_is_stdout(name))
		return output_take_stdout(out);
	out->fd = open(name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (out->fd < 0 && errno == ENOENT)
		return output_open_missing(out);
	if (out->fd < 0 && errno == EISDIR)
		return cli_fail(CLI_FILE, "%s is a directory", name);
	if (out->fd < 0 || fstat(out->fd, &out->st))
		return output_fail(out, "write to");
	out->kind = S_ISREG(out->st.st_mode) ? OUTPUT_REPLACED : OUTPUT_STREAM;
	return CLI_OK;
}

/* Returns true if another program has passed the open descriptor (/dev/fd/3), and will read the
 * new content through it. */
static bool output_is_inherited(const struct output *out)
{
	struct stat st;

	for (int fd = 0; fd < 256; fd++)
		if (fd != out->fd && !fstat(fd, &st) && output_is_same(&st, &out->st))
			return true;
	return false;
}

/* Returns false if the open file has no name any more. */
static bool output_find_path(struct output *out)
{
	struct stat st;

	if (realpath(out->name, out->path) && !stat(out->path, &st) &&
	    output_is_same(&st, &out->st))
		return true;
	out->path[0] = '\0';
	return false;
}

static bool output_can_replace(struct output *out)
{
	struct newfile_opts made = {.path = out->path};

	/* Overwrite a file that has several names: after a rename the other names would keep the
	 * old content. */
	if (!output_find_path(out) || out->st.st_nlink > 1 || output_is_inherited(out) ||
	    newfile_open(&out->made, &made, NULL))
		return false;
	if (!attributes_copy(out->fd, &out->st, out->made.fd)) {
		newfile_abort(&out->made);
		return false;
	}
	return true;
}

static int output_reserve(struct output *out, int fd)
{
	struct newfile_opts opts = {.path = out->name, .size = out->total};
	struct error err;

	return newfile_reserve(fd, &opts, &err) ? cli_report(&err, "") : CLI_OK;
}

int output_begin(struct output *out, uint64_t total)
{
	struct newfile_opts made = {.path = out->name, .size = total};
	struct error err;

	out->total = total;
	if (out->kind == OUTPUT_STREAM)
		return CLI_OK;
	if (out->kind == OUTPUT_NEW)
		return newfile_open(&out->made, &made, &err) ? cli_report(&err, "") : CLI_OK;
	if (output_can_replace(out))
		return output_reserve(out, out->made.fd);
	out->kind = OUTPUT_IN_PLACE;
	return output_reserve(out, out->fd);
}

int output_write(struct output *out, const uint8_t *src, size_t len)
{
	struct pollfd pfd = {.fd = out->made.fd >= 0 ? out->made.fd : out->fd, .events = POLLOUT};

	while (len > 0) {
		ssize_t n = write(pfd.fd, src, len);

		if (n < 0 && errno == EAGAIN) {
			poll(&pfd, 1, -1);
		} else if (n < 0 && errno != EINTR) {
			return output_fail(out, "write to");
		} else if (n > 0) {
			src += n;
			len -= (size_t)n;
		}
	}
	return CLI_OK;
}

static int output_settle(struct output *out)
{
	if (out->st.st_size > (off_t)out->total && ftruncate(out->fd, (off_t)out->total))
		return output_fail(out, "truncate");
	if (fsync(out->fd))
		return output_fail(out, "write to");
	errno = out->path[0] ? -newfile_sync_name(out->fd, out->path) : 0;
	return errno ? output_fail(out, "write to") : CLI_OK;
}

/* Copy the bytes into the existing file, because its name cannot be given to another file (for
 * instance, the file is a mount point). */
static int output_copy_in_place(struct output *out)
{
	off_t from = 0;

	if (output_reserve(out, out->fd))
		return CLI_FILE;
	while (from < (off_t)out->total)
		if (sendfile(out->fd, out->made.fd, &from, out->total - (uint64_t)from) < 0)
			return output_fail(out, "write to");
	return output_settle(out);
}

static int output_replace(struct output *out)
{
	struct error err;

	if (!newfile_commit(&out->made, true, &err))
		return CLI_OK;
	if (err.cause == EBUSY || err.cause == EPERM || err.cause == EACCES || err.cause == EXDEV)
		return output_copy_in_place(out);
	errno = err.cause;
	return output_fail(out, "replace");
}

int output_commit(struct output *out)
{
	struct error err;

	switch (out->kind) {
	case OUTPUT_NEW:
		return newfile_commit(&out->made, true, &err) ? cli_report(&err, "") : CLI_OK;
	case OUTPUT_REPLACED:
		return output_replace(out);
	case OUTPUT_IN_PLACE:
		return output_settle(out);
	case OUTPUT_STREAM:
		break;
	}
	/* Pipes and terminals cannot be synced and need not be. */
	if (fsync(out->fd) && errno != EINVAL && errno != EROFS && errno != EOPNOTSUPP)
		return output_fail(out, "write to");
	return CLI_OK;
}

void output_close(struct output *out)
{
	newfile_abort(&out->made);
	if (out->fd >= 0)
		close(out->fd);
	out->fd = -1;
}
