/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/poll.h"
#include "base/text.h"

extern char **environ;

static void child_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Move a descriptor above 2: the application may have closed 0 to 2, and the child needs these
 * numbers for its streams. */
static int child_move_up(int *fd)
{
	int up;

	if (*fd > STDERR_FILENO)
		return 0;
	up = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (up < 0)
		return errno;
	close(*fd);
	*fd = up;
	return 0;
}

/* Use sockets, because a write to a socket can be kept from raising SIGPIPE. Element [i][0] is
 * this process's end of a pair. */
static int child_make_streams(int pairs[3][2])
{
	for (int i = 0; i < 3; i++)
		pairs[i][0] = pairs[i][1] = -1;
	for (int i = 0; i < 3; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]))
			return errno;
	for (int i = 0; i < 6; i++) {
		int rc = child_move_up(&pairs[i / 2][i % 2]);

		if (rc)
			return rc;
	}
	return 0;
}

static int child_spawn(struct child *c, char *const argv[], int pairs[3][2])
{
	posix_spawn_file_actions_t actions;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc)
		return rc;
	for (int i = 0; i < 3 && !rc; i++)
		rc = posix_spawn_file_actions_adddup2(&actions, pairs[i][1], i);
	if (!rc)
		rc = posix_spawnp(&c->pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

static int child_open_pidfd(struct child *c)
{
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->pidfd >= 0)
		return 0;
	if (errno == ESRCH) { /* the child has exited, and the application took its status */
		c->ended = true;
		c->status = -1;
		return 0;
	}
	return errno;
}

int child_start(struct child *c, char *const argv[])
{
	int pairs[3][2], rc;

	memset(c, 0, sizeof(*c));
	c->pidfd = c->in = c->out = c->err = -1;
	rc = child_make_streams(pairs);
	if (!rc)
		rc = child_spawn(c, argv, pairs);
	for (int i = 0; i < 3; i++)
		child_close(&pairs[i][1]);
	c->in = pairs[0][0];
	c->out = pairs[1][0];
	c->err = pairs[2][0];
	if (!rc)
		rc = child_open_pidfd(c);
	if (rc) {
		c->ended = true;
		child_end(c, 0);
		return rc;
	}
	fcntl(c->err, F_SETFL, fcntl(c->err, F_GETFL) | O_NONBLOCK);
	return 0;
}

/* Append to the saved output, and keep only its last bytes. */
static void child_keep_said(struct child *c, const char *bytes, size_t len)
{
	size_t drop;

	if (len > CHILD_SAID) {
		bytes += len - CHILD_SAID;
		len = CHILD_SAID;
	}
	drop = c->said_len + len > CHILD_SAID ? c->said_len + len - CHILD_SAID : 0;
	memmove(c->said, c->said + drop, c->said_len - drop);
	memcpy(c->said + c->said_len - drop, bytes, len);
	c->said_len += len - drop;
}

void child_take_said(struct child *c)
{
	char buf[4096];
	ssize_t n;

	while (c->err >= 0) {
		n = read(c->err, buf, sizeof(buf));
		if (n > 0)
			child_keep_said(c, buf, (size_t)n);
		else if (n == 0 || (errno != EINTR && errno != EAGAIN))
			child_close(&c->err);
		else if (errno == EAGAIN)
			return;
	}
}

/*
 * Wait with poll(2) until fd is readable or the deadline has passed, and read standard error
 * meanwhile. Returns 0 or ETIMEDOUT.
 */
static int child_poll(struct child *c, int fd, uint64_t deadline)
{
	for (;;) {
		struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
					{.fd = c->err, .events = POLLIN}};
		int ms = poll_ms_left(deadline);
		int n = poll(fds, 2, ms);

		if (n < 0 && errno != EINTR)
			return errno;
		if (n > 0 && fds[1].revents)
			child_take_said(c);
		if (n > 0 && fds[0].revents)
			return 0;
		if (n == 0 && ms >= 0 && poll_ms_left(deadline) == 0)
			return ETIMEDOUT;
	}
}

int child_wait_readable(struct child *c, uint64_t deadline)
{
	return child_poll(c, c->out, deadline);
}

int child_wait(struct child *c, uint64_t deadline)
{
	int status = 0, rc = 0;
	pid_t got;

	if (c->ended)
		return 0;
	if (c->pidfd >= 0)
		rc = child_poll(c, c->pidfd, deadline);
	if (rc)
		return rc;
	do {
		got = waitpid(c->pid, &status, 0);
	} while (got < 0 && errno == EINTR);
	c->ended = true;
	if (got != c->pid)
		c->status = -1;
	else
		c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	child_take_said(c);
	return 0;
}

void child_end(struct child *c, int grace_ms)
{
	/*
	 * Shut the stream down: closing alone is not enough, because a forked process may have
	 * copies of the descriptor.
	 */
	if (c->in >= 0)
		shutdown(c->in, SHUT_RDWR);
	child_close(&c->in);
	if (!c->ended && child_wait(c, poll_deadline(grace_ms))) {
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
		child_wait(c, CLOCK_NEVER);
	}
	child_close(&c->out);
	child_close(&c->err);
	child_close(&c->pidfd);
}

void child_forget(struct child *c)
{
	child_close(&c->in);
	child_close(&c->out);
	child_close(&c->err);
	child_close(&c->pidfd);
	c->ended = true;
}

const char *child_words(const struct child *c, char *buf, size_t size)
{
	size_t out = 0;

	for (size_t i = 0; i < c->said_len && out + 3 < size; i++) {
		char ch = c->said[i];

		if (ch == '\r' || ch == '\0')
			continue;
		if (ch != '\n') {
			buf[out++] = ch;
		} else if (i + 1 < c->said_len && out) {
			buf[out++] = ';';
			buf[out++] = ' ';
		}
	}
	buf[out] = '\0';
	text_make_printable(buf);
	return buf;
}
