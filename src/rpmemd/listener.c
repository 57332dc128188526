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
#include "rpmemd/endpoint.h"
#include "rpmemd/journal.h"
#include "rpmemd/pending.h"
#include "rpmemd/run.h"
#include "rpmemd/sockets.h"
#include "rpmemd/startup.h"
#include "service/secret.h"
#include "service/manager.h"
#include "service/process.h"

#define LISTENER_END_MS 10000 /* time limit for the processes to close their pools at the end */
/* pause after a connection could not be accepted for lack of resources */
#define LISTENER_PAUSE_MS 100

struct listener {
	const struct options *opts;
	struct settings *settings;
	int fds[SOCKETS_MAX];
	unsigned fd_count;
	int signal_fd;
	uint64_t paused; /* no connection is accepted until this time; 0: no pause */
	struct arrivals pendings;
	struct children children;
	bool is_ending;
	uint64_t deadline; /* time at which the listener exits, after it has been asked to exit */
};

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
		pendings_add(&l->pendings, l->settings->max_pending, fd, endpoint.there);
		return;
	}
	LOG_ERROR_LIMITED("a connection cannot be served: %s", strerror(-rc));
	close(fd);
}

/* Check that an initiator with a valid proof may be admitted. Returns 0, or an errno and a text. */
static int listener_judge(const struct listener *l, const char *addr, struct error *err)
{
	const char *limit = NULL;

	if (children_count(&l->children, NULL) >= l->settings->max_pools)
		limit = "as many pools as it may (max-pools)";
	else if (children_count(&l->children, addr) >= l->settings->max_per_address)
		limit = "as many pools to this address as it may (max-per-address)";
	if (!limit)
		return 0;
	LOG_WARNING_LIMITED("%s is not admitted: too many pools are served", addr);
	return error_set(err, ERROR_REFUSED, EBUSY, "rpmemd serves %s", limit);
}

static int listener_start_child(struct listener *l, const struct pending *pending,
				const struct direct_start *start, struct error *err)
{
	int rc = children_start(&l->children, l->opts, pending->fd, pending->addr, start);

	if (!rc)
		return 0;
	LOG_ERROR_LIMITED("a connection cannot be served: %s", strerror(-rc));
	return error_set(err, ERROR_LOCAL, EAGAIN, "rpmemd cannot start a process");
}

static void listener_serve(struct listener *l, struct pending *pending, const struct secret *secret)
{
	struct direct_start start = {.exchange = pending->exchange, .secret = *secret};
	struct error err;
	int rc = listener_judge(l, pending->addr, &err);

	if (!rc)
		rc = listener_start_child(l, pending, &start, &err);
	if (rc)
		direct_answer(&pending->stream, &start, &err, NULL);
	secret_forget(&start.secret);
}

/* Read the secret for each proof, so that a changed secret takes effect immediately. */
static void listener_on_proof(struct listener *l, struct pending *pending,
			      const struct wire_proof *proof)
{
	struct secret secret;
	struct error err;

	if (secret_load(&secret, l->settings->secret_file, &err))
		LOG_ERROR_LIMITED("%s", err.text);
	else if (direct_check_proof(&pending->stream, &secret, proof, &pending->exchange, &err))
		LOG_WARNING_LIMITED("%s: %s", pending->addr, err.text);
	else
		listener_serve(l, pending, &secret);
	secret_forget(&secret);
}

static void listener_on_pending(struct listener *l, struct pending *pending)
{
	struct wire_proof proof;
	struct error err;
	int rc = direct_receive_proof(&pending->stream, &proof, &err);

	if (rc == -EAGAIN)
		return;
	if (rc)
		LOG_WARNING_LIMITED("%s: %s", pending->addr, err.text);
	else
		listener_on_proof(l, pending, &proof);
	pendings_remove(&l->pendings, pending);
}

static void listener_reload(struct listener *l)
{
	struct settings *fresh = malloc(sizeof(*fresh));
	struct error err;

	manager_reloading();
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
	manager_reloaded();
}

static void listener_begin_end(struct listener *l)
{
	LOG_NOTICE("ending");
	manager_stopping();
	for (unsigned i = 0; i < l->fd_count; i++)
		close(l->fds[i]);
	l->fd_count = 0;
	pendings_remove_all(&l->pendings);
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

/* Returns the descriptors of all events: signals, connections, proofs. NULL: out of memory. */
static struct pollfd *listener_poll_set(const struct listener *l, nfds_t *count)
{
	bool paused = l->paused && poll_ms_left(l->paused);
	nfds_t n = 1 + l->fd_count;
	struct pollfd *fds = calloc(n + l->pendings.count[ARRIVAL_PENDING], sizeof(*fds));
	struct list *it;

	if (!fds)
		return NULL;
	fds[0] = (struct pollfd){.fd = l->signal_fd, .events = POLLIN};
	for (unsigned i = 0; i < l->fd_count; i++)
		fds[1 + i] = (struct pollfd){.fd = paused ? -1 : l->fds[i], .events = POLLIN};
	list_for_each (it, &l->pendings.list)
		fds[n++] = (struct pollfd){.fd = container_of(it, struct pending, arrival.node)->fd,
					   .events = POLLIN};
	*count = n;
	return fds;
}

static int listener_wait_ms(struct listener *l)
{
	int ms = pendings_check_time(&l->pendings);

	if (l->is_ending)
		ms = poll_ms_left(l->deadline);
	else if (l->paused && poll_ms_left(l->paused) && (ms < 0 || ms > LISTENER_PAUSE_MS))
		ms = poll_ms_left(l->paused);
	return ms;
}

/* Handle proofs first, because accepting a connection changes the list of proofs. */
static void listener_step(struct listener *l)
{
	/* call this first, because it may also remove connections from the list */
	int wait_ms = listener_wait_ms(l);
	unsigned sockets = l->fd_count;
	struct list *it, *next;
	struct pollfd *fds;
	nfds_t count, i = 1 + sockets;

	fds = listener_poll_set(l, &count);
	if (!fds || poll(fds, count, wait_ms) < 0) {
		free(fds);
		return;
	}
	list_for_each_safe (it, next, &l->pendings.list)
		if (fds[i++].revents)
			listener_on_pending(l, container_of(it, struct pending, arrival.node));
	for (i = 0; i < sockets; i++)
		if (fds[1 + i].revents)
			listener_accept(l, l->fds[i]);
	if (fds[0].revents)
		listener_on_signal(l);
	children_reap(&l->children);
	free(fds);
}

/* Checks the secret at the start only. Later each proof reads the secret again. */
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

	l->signal_fd = process_take_signals(signals, 4);
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
	process_raise_limit();
	printf("listening at %s\n", address_show(&l->settings->listen, text));
	fflush(stdout);
	LOG_NOTICE("listening at %s", text);
	manager_ready("at %s", text);
	return 0;
}

int listener_run(const struct options *opts, struct settings *s)
{
	struct listener l = {.opts = opts, .settings = s};
	struct error err;

	arrivals_init(&l.pendings);
	if (listener_begin(&l, &err)) {
		if (s->use_syslog || strcmp(s->log_file, "-") != 0)
			fprintf(stderr, "rpmemd: %s\n", err.text);
		return RUN_ENDED;
	}
	while (!l.is_ending || (l.children.first && poll_ms_left(l.deadline)))
		listener_step(&l);
	for (struct child *child = l.children.first; child; child = child->next) {
		LOG_ERROR("process %d does not end, and is killed", (int)child->pid);
		child_kill(child, SIGKILL);
	}
	close(l.signal_fd);
	return 0;
}
