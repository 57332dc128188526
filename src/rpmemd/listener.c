/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/listener.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/poll.h"
#include "rpmemd/child.h"
#include "rpmemd/connection.h"
#include "rpmemd/endpoint.h"
#include "rpmemd/journal.h"
#include "rpmemd/run.h"
#include "rpmemd/sockets.h"
#include "rpmemd/startup.h"
#include "session/secret.h"

#define LISTENER_END_MS   10000 /* for pools to be closed in good order */
#define LISTENER_PAUSE_MS 100   /* when a connection cannot be accepted for want of resources */

struct listener {
	const struct options *opts;
	struct settings *settings;
	int fds[SOCKETS_MAX];
	unsigned fd_count;
	int signal_fd;
	uint64_t paused; /* until then nothing is accepted; 0: it is */
	struct children children;
	bool is_ending;
	uint64_t deadline; /* of the end */
};

/* Neither one address nor slow ones keep out others: of too many the oldest goes. */
static void listener_make_room(struct listener *l, const char *addr)
{
	unsigned most = l->settings->max_pending, share = most > 4 ? most / 4 : 1;
	struct child *oldest = NULL;

	if (children_count(&l->children, addr, CHILD_PENDING) >= share)
		oldest = children_oldest_pending(&l->children, addr);
	else if (children_count(&l->children, NULL, CHILD_PENDING) >= most)
		oldest = children_oldest_pending(&l->children, NULL);
	if (!oldest)
		return;
	LOG_WARNING_LIMITED("too many connections that have proved nothing: the oldest, from %s, "
			    "is closed",
			    oldest->addr);
	child_kill(oldest, SIGKILL);
}

static void listener_accept(struct listener *l, int listening)
{
	struct endpoint endpoint;
	int rc, fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			LOG_ERROR_LIMITED("no connection can be accepted: %s", strerror(errno));
			l->paused = poll_deadline(LISTENER_PAUSE_MS);
		}
		return;
	}
	rc = endpoint_from_socket(fd, &endpoint);
	if (!rc) {
		listener_make_room(l, endpoint.there);
		rc = children_start(&l->children, l->opts, fd, endpoint.there);
	}
	if (rc)
		LOG_ERROR_LIMITED("a connection cannot be served: %s", strerror(-rc));
	close(fd);
}

static enum connection_verdict listener_judge(const struct listener *l, const struct child *child)
{
	if (children_count(&l->children, NULL, CHILD_SERVING) >= l->settings->max_pools)
		return CONNECTION_TOO_MANY;
	if (children_count(&l->children, child->addr, CHILD_SERVING) >=
	    l->settings->max_per_address)
		return CONNECTION_ADDRESS_FULL;
	return CONNECTION_ADMITTED;
}

static void listener_on_child(struct listener *l, struct child *child)
{
	char byte;

	if (read(child->fd, &byte, 1) == 1 && byte == CONNECTION_ASK &&
	    child->state == CHILD_PENDING) {
		byte = (char)listener_judge(l, child);
		if (byte == CONNECTION_ADMITTED)
			child->state = CHILD_SERVING;
		else
			LOG_WARNING_LIMITED("%s is not admitted: too many pools are served",
					    child->addr);
		if (send(child->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
			return;
	}
	close(child->fd);
	child->fd = -1;
}

static void listener_reload(struct listener *l)
{
	struct settings *fresh = malloc(sizeof(*fresh));
	struct error err;

	if (journal_reopen(&err))
		LOG_ERROR("%s", err.text);
	if (!fresh || startup_load(l->opts, fresh, &err)) {
		LOG_ERROR("SIGHUP: the configuration stays as it was: %s",
			  fresh ? err.text : "out of memory");
	} else {
		*l->settings = *fresh;
		LOG_NOTICE("SIGHUP: the configuration was read again");
	}
	free(fresh);
}

static void listener_close_sockets(struct listener *l)
{
	for (unsigned i = 0; i < l->fd_count; i++)
		close(l->fds[i]);
	l->fd_count = 0;
}

static void listener_begin_end(struct listener *l)
{
	LOG_NOTICE("ending");
	listener_close_sockets(l);
	l->is_ending = true;
	l->deadline = poll_deadline(LISTENER_END_MS);
	for (struct child *child = l->children.first; child; child = child->next)
		child_kill(child, SIGTERM);
}

static void listener_on_signal(struct listener *l)
{
	struct signalfd_siginfo info;

	if (read(l->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP)
		listener_reload(l);
	else if (info.ssi_signo != SIGCHLD && !l->is_ending)
		listener_begin_end(l);
}

/* Everything that may happen: signals, connections, children. NULL: out of memory. */
static struct pollfd *listener_poll_set(const struct listener *l, nfds_t *count)
{
	bool paused = l->paused && poll_ms_left(l->paused);
	struct pollfd *fds;
	nfds_t n = 1 + l->fd_count;

	for (const struct child *child = l->children.first; child; child = child->next)
		n++;
	fds = calloc(n, sizeof(*fds));
	if (!fds)
		return NULL;
	fds[0] = (struct pollfd){.fd = l->signal_fd, .events = POLLIN};
	for (unsigned i = 0; i < l->fd_count; i++)
		fds[1 + i] = (struct pollfd){.fd = paused ? -1 : l->fds[i], .events = POLLIN};
	n = 1 + l->fd_count;
	for (const struct child *child = l->children.first; child; child = child->next)
		fds[n++] = (struct pollfd){.fd = child->fd, .events = POLLIN};
	*count = n;
	return fds;
}

static int listener_wait_ms(struct listener *l)
{
	int ms = children_check_time(&l->children);

	if (l->is_ending)
		ms = poll_ms_left(l->deadline);
	else if (l->paused && poll_ms_left(l->paused) && (ms < 0 || ms > LISTENER_PAUSE_MS))
		ms = poll_ms_left(l->paused);
	return ms;
}

/* Children first, as accepting one adds to their list. */
static void listener_step(struct listener *l)
{
	unsigned sockets = l->fd_count;
	struct child *child = l->children.first;
	struct pollfd *fds;
	nfds_t count;

	fds = listener_poll_set(l, &count);
	if (!fds || poll(fds, count, listener_wait_ms(l)) < 0) {
		free(fds);
		return;
	}
	for (nfds_t i = 1 + sockets; i < count; i++, child = child->next)
		if (fds[i].revents && child->fd >= 0)
			listener_on_child(l, child);
	for (unsigned i = 0; i < sockets; i++)
		if (fds[1 + i].revents)
			listener_accept(l, l->fds[i]);
	if (fds[0].revents)
		listener_on_signal(l);
	children_reap(&l->children);
	free(fds);
}

static void listener_loop(struct listener *l)
{
	while (!l->is_ending || (l->children.first && poll_ms_left(l->deadline)))
		listener_step(l);
	for (struct child *child = l->children.first; child; child = child->next) {
		LOG_ERROR("process %d does not end, and is killed", (int)child->pid);
		child_kill(child, SIGKILL);
	}
}

/* Each connection's process reads the secret itself, so a changed one counts at once; here it is
 * only looked at. */
static int listener_check_secret(const struct settings *s, struct error *err)
{
	struct secret secret;
	int rc;

	if (!s->secret_file[0])
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "--listen needs a secret-file: without ssh nothing else keeps "
				 "strangers away");
	rc = secret_load(&secret, s->secret_file, err);
	secret_forget(&secret);
	return rc;
}

static int listener_begin(struct listener *l, struct error *err)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	char text[ADDRESS_TEXT];
	int rc;

	l->signal_fd = startup_block_signals(signals, 4);
	rc = startup_begin(l->opts, l->settings, err);
	if (rc)
		return rc;
	rc = listener_check_secret(l->settings, err);
	if (!rc)
		rc = sockets_listen(&l->settings->listen, l->fds, &l->fd_count, err);
	if (rc) {
		LOG_ERROR("%s", err->text);
		return rc;
	}
	startup_raise_limit();
	printf("listening at %s\n", address_show(&l->settings->listen, text));
	fflush(stdout);
	LOG_NOTICE("listening at %s", text);
	return 0;
}

int listener_run(const struct options *opts, struct settings *s)
{
	struct listener l = {.opts = opts, .settings = s};
	struct error err;

	if (listener_begin(&l, &err)) {
		if (s->use_syslog || strcmp(s->log_file, "-") != 0)
			fprintf(stderr, "rpmemd: %s\n", err.text);
		return RUN_ENDED;
	}
	listener_loop(&l);
	close(l.signal_fd);
	return 0;
}
