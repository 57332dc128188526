/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma serve: files as remote memory. The data path runs in the library; this loop only
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

#include "base/text.h"
#include "cli.h"
#include "commands.h"
#include "liblog.h"
#include "listen_probe.h"
#include "serve.h"

static int open_device(struct serve *s, const struct address *listen)
{
	struct ibv_context *context;
	int rc = rpma_utils_get_ibv_context(listen->host, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context);

	if (!rc)
		rc = rpma_peer_new(context, &s->peer);
	if (rc)
		return cli_fail(CLI_FILE, "no RDMA device for address %s: %s", listen->host,
				liblog_reason(rc));
	return serve_regions_register(s, context);
}

/* Port "0" becomes the one that was taken. */
static int start_listening(struct serve *s, struct address *listen)
{
	char text[ADDRESS_TEXT];
	int fd, rc = rpma_ep_listen(s->peer, listen->host, listen->port, &s->ep);
	uint16_t port;

	if (!rc)
		rc = rpma_ep_get_port(s->ep, &port);
	if (rc)
		return cli_fail(CLI_FILE, "cannot listen on %s: %s", address_show(listen, text),
				liblog_reason(rc));
	snprintf(listen->port, sizeof(listen->port), "%u", port);
	rpma_ep_get_fd(s->ep, &fd);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return CLI_OK;
}

static void announce_region(const struct serve_region *r, const struct address *listen)
{
	char text[ADDRESS_TEXT];

	printf("serving region '%s' at %s: %s of %s, durability %s\n", r->name,
	       address_show(listen, text), text_size(r->data.size).text, r->path,
	       rpma_utils_durability_2str(r->data.durability));
}

static void announce_region_json(const struct serve_region *r)
{
	printf("{\"region\":");
	cli_json_string(r->name);
	printf(",\"file\":");
	cli_json_string(r->path);
	printf(",\"size\":%" PRIu64 ",\"durability\":\"%s\"}", r->data.size,
	       rpma_utils_durability_2str(r->data.durability));
}

static void announce_json(const struct serve *s, const struct address *listen)
{
	printf("{\"addr\":");
	cli_json_string(listen->host);
	printf(",\"port\":%s,\"secret\":%s,\"regions\":[", listen->port,
	       s->has_secret ? "true" : "false");
	for (unsigned i = 0; i < s->region_count; i++) {
		fputs(i ? "," : "", stdout);
		announce_region_json(&s->regions[i]);
	}
	puts("]}");
}

static void announce(const struct serve *s, const struct address *listen)
{
	if (s->opts->json)
		announce_json(s, listen);
	for (unsigned i = 0; i < s->region_count && !s->opts->json; i++)
		announce_region(&s->regions[i], listen);
	fflush(stdout);
}

/* The fds that are not clients are told apart by these tags. */
static char tag_signal, tag_listener, tag_names;

static int watch(int epoll_fd, int fd, void *tag)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = tag};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

/* True: it is time to end. */
static bool on_signal(struct serve *s, int signal_fd)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo != SIGUSR1)
		return true;
	serve_print_counters(s);
	return false;
}

static int sooner(int a_ms, int b_ms)
{
	if (a_ms < 0 || b_ms < 0)
		return a_ms < 0 ? b_ms : a_ms;
	return a_ms < b_ms ? a_ms : b_ms;
}

static int loop(struct serve *s, int signal_fd)
{
	struct epoll_event ev;

	/* One event at a time: handling one may delete the object of another. */
	for (;;) {
		int timeout_ms = sooner(serve_drop_overdue(s), serve_names_tick(s));
		int n = epoll_wait(s->epoll_fd, &ev, 1, timeout_ms);

		if (n < 0 && errno != EINTR)
			return cli_fail(CLI_FILE, "epoll: %s", strerror(errno));
		if (n <= 0)
			continue;
		if (ev.data.ptr == &tag_listener)
			serve_on_request(s);
		else if (ev.data.ptr == &tag_names)
			serve_names_on_answer(s);
		else if (ev.data.ptr != &tag_signal)
			serve_on_watch(s, ev.data.ptr);
		else if (on_signal(s, signal_fd))
			return CLI_OK;
	}
}

static int run(struct serve *s, int signal_fd, const struct address *listen, bool *offered)
{
	int ep_fd, rc;

	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	rpma_ep_get_fd(s->ep, &ep_fd);
	if (s->epoll_fd < 0 || watch(s->epoll_fd, signal_fd, &tag_signal) ||
	    watch(s->epoll_fd, ep_fd, &tag_listener) || watch(s->epoll_fd, s->name_fd, &tag_names))
		return cli_fail(CLI_FILE, "epoll: %s", strerror(errno));
	announce(s, listen);
	*offered = true; /* files that were made for it stay from now on */
	rc = loop(s, signal_fd);
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
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int serve_regions(struct serve *s, int signal_fd)
{
	struct address listen = s->opts->listen;
	bool offered = false;
	int rc = address_probe_listen(&listen);

	if (!rc)
		rc = serve_regions_open(s);
	if (rc)
		return rc;
	rc = serve_names_open(s);
	if (!rc)
		rc = open_device(s, &listen);
	if (!rc)
		rc = start_listening(s, &listen);
	if (!rc)
		rc = run(s, signal_fd, &listen, &offered);
	rpma_ep_shutdown(&s->ep);
	serve_regions_unregister(s);
	rpma_peer_delete(&s->peer);
	serve_names_close(s);
	serve_regions_close(s, offered);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	return rc;
}

static int load_secret(struct serve *s)
{
	struct error err;

	if (!s->opts->secret_file)
		return CLI_OK;
	s->has_secret = true;
	return secret_load(&s->secret, s->opts->secret_file, &err) ? cli_report(&err, "") : CLI_OK;
}

int cmd_serve(int argc, char **argv)
{
	struct serve_opts opts;
	struct serve serve = {.opts = &opts, .epoll_fd = -1, .name_fd = -1};
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
	rc = load_secret(&serve);
	if (!rc)
		rc = serve_regions(&serve, signal_fd);
	secret_forget(&serve.secret);
	close(signal_fd);
	return rc;
}
