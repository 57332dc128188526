/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma serve: a file as remote memory. The data path runs in the library; this loop only
 * greets clients and sees them off. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "liblog.h"
#include "serve.h"

static int open_memory(struct serve *s)
{
	int rc = mapfile_open(&s->data, &s->opts->file);

	if (rc)
		return rc;
	rc = mapfile_open_scratch(&s->scratch, s->opts->file.path, SERVE_SCRATCH);
	if (rc)
		mapfile_discard(&s->data);
	return rc;
}

static int open_device(struct serve *s, const struct address *listen)
{
	struct ibv_context *context;
	int rc = rpma_utils_get_ibv_context(listen->host, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context);

	if (!rc)
		rc = rpma_peer_new(context, &s->peer);
	if (rc)
		return cli_fail(CLI_FILE, "no RDMA device for address %s: %s", listen->host,
				liblog_reason(rc));
	return serve_export_all(s, context);
}

static int start_listening(struct serve *s, const struct address *listen)
{
	int fd, rc = rpma_ep_listen(s->peer, listen->host, listen->port, &s->ep);

	if (rc)
		return cli_fail(CLI_FILE, "cannot listen on %s: %s", address_show(listen),
				liblog_reason(rc));
	rpma_ep_get_fd(s->ep, &fd);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return CLI_OK;
}

static void announce(const struct serve *s, const struct address *listen)
{
	const char *durability = hello_class_name(s->data.durability);

	if (s->opts->json) {
		printf("{\"addr\":");
		cli_json_string(listen->host);
		printf(",\"port\":%s,\"region\":", listen->port);
		cli_json_string(s->opts->region);
		printf(",\"file\":");
		cli_json_string(s->opts->file.path);
		printf(",\"size\":%" PRIu64 ",\"durability\":\"%s\"}\n", s->data.size, durability);
	} else {
		printf("serving region '%s' at %s: %s of %s, durability %s\n", s->opts->region,
		       address_show(listen), cli_show_size(s->data.size).text, s->opts->file.path,
		       durability);
	}
	fflush(stdout);
}

/* The two fds that are not clients are told apart by these tags. */
static char tag_signal, tag_listener;

static int watch(int epoll_fd, int fd, void *tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = tag};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

static int loop(struct serve *s)
{
	struct epoll_event ev;

	/* One event at a time: handling one may delete the object of another. */
	for (;;) {
		int n = epoll_wait(s->epoll_fd, &ev, 1, -1);

		if (n < 0 && errno != EINTR)
			return cli_fail(CLI_FILE, "epoll: %s", strerror(errno));
		if (n <= 0)
			continue;
		if (ev.data.ptr == &tag_signal)
			return CLI_OK;
		if (ev.data.ptr == &tag_listener)
			serve_on_request(s);
		else
			serve_on_event(s, ev.data.ptr);
	}
}

static int run(struct serve *s, int signal_fd, const struct address *listen)
{
	int ep_fd, rc;

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rpma_ep_get_fd(s->ep, &ep_fd);
	if (s->epoll_fd < 0 || watch(s->epoll_fd, signal_fd, &tag_signal) ||
	    watch(s->epoll_fd, ep_fd, &tag_listener))
		return cli_fail(CLI_FILE, "epoll: %s", strerror(errno));
	announce(s, listen);
	s->data.made = NULL; /* it has been offered; from now on it stays */
	rc = loop(s);
	serve_drop_all(s);
	return rc;
}

/* Before any thread exists, so that the library's threads inherit the mask. */
static int block_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int serve_file(struct serve *s, int signal_fd)
{
	struct address listen = s->opts->listen;
	int rc = address_probe_listen(&listen);

	if (!rc)
		rc = open_memory(s);
	if (rc)
		return rc;
	rc = open_device(s, &listen);
	if (!rc)
		rc = start_listening(s, &listen);
	if (!rc)
		rc = run(s, signal_fd, &listen);
	rpma_ep_shutdown(&s->ep);
	serve_unexport_all(s);
	rpma_peer_delete(&s->peer);
	mapfile_close(&s->scratch);
	mapfile_discard(&s->data);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	return rc;
}

int cmd_serve(int argc, char **argv)
{
	struct serve_opts opts;
	struct serve serve = {.opts = &opts, .epoll_fd = -1};
	int rc = serve_parse(argc, argv, &opts);
	int signal_fd;

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	signal_fd = block_signals();
	if (signal_fd < 0)
		return cli_fail(CLI_FILE, "signalfd: %s", strerror(errno));
	liblog_init(opts.verbose);
	/* A flush to persistence that cannot be one must fail and not pass. */
	setenv("RPMA_STRICT_PERSIST", "1", 0);
	rc = serve_file(&serve, signal_fd);
	close(signal_fd);
	return rc;
}
