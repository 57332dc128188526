/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma serve: files as remote memory. src/export does it; this prints, and obeys signals. */
#include "serve.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/text.h"
#include "cli.h"
#include "commands.h"

static void announce_text(const struct server *server)
{
	struct server_region_info r;
	char text[ADDRESS_TEXT];

	for (unsigned i = 0; server_get_region(server, i, &r); i++)
		printf("serving region '%s' at %s: %s of %s, durability %s\n", r.name,
		       address_show(server_get_address(server), text), text_size(r.size).text,
		       r.path, rpma_utils_durability_2str(r.durability));
}

static void announce_region_json(const struct server_region_info *r)
{
	printf("{\"region\":");
	cli_json_string(r->name);
	printf(",\"file\":");
	cli_json_string(r->path);
	printf(",\"size\":%" PRIu64 ",\"durability\":\"%s\"}", r->size,
	       rpma_utils_durability_2str(r->durability));
}

static void announce_json(const struct server *server, bool has_secret)
{
	const struct address *at = server_get_address(server);
	struct server_region_info r;

	printf("{\"addr\":");
	cli_json_string(at->host);
	printf(",\"port\":%s,\"secret\":%s,\"regions\":[", at->port, has_secret ? "true" : "false");
	for (unsigned i = 0; server_get_region(server, i, &r); i++) {
		fputs(i ? "," : "", stdout);
		announce_region_json(&r);
	}
	puts("]}");
}

static void announce(const struct server *server, const struct serve_opts *opts)
{
	if (opts->json)
		announce_json(server, opts->server.secret);
	else
		announce_text(server);
	fflush(stdout);
}

/* True: it is time to end. */
static bool on_signal(const struct server *server, bool json, int signal_fd)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	if (info.ssi_signo != SIGUSR1)
		return true;
	serve_print_counters(server, json);
	return false;
}

static int loop(struct server *server, bool json, int signal_fd)
{
	struct pollfd fds[] = {
		{.fd = signal_fd, .events = POLLIN},
		{.fd = server_get_fd(server), .events = POLLIN},
	};
	struct error err;
	int next_ms;

	for (;;) {
		if (server_step(server, &next_ms, &err))
			return cli_report(&err, "");
		if (poll(fds, 2, next_ms) > 0 && fds[0].revents &&
		    on_signal(server, json, signal_fd))
			return CLI_OK;
	}
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

/* What helps on our command line. */
static const char *hint_for(const struct server_opts *opts, const struct error *err)
{
	if (err->cause == EEXIST && opts->create)
		return "; leave out --create to serve it as it is";
	if ((err->cause == ENOENT || err->cause == ENODATA) && !opts->create)
		return "; use --create --size to make it";
	if (err->cause == EMEDIUMTYPE)
		return "; --allow-volatile serves it nevertheless";
	return "";
}

static int serve_files(const struct serve_opts *opts, int signal_fd)
{
	struct server *server;
	struct error err;
	int rc;

	if (server_new(&opts->server, &server, &err))
		return cli_report(&err, hint_for(&opts->server, &err));
	announce(server, opts);
	rc = loop(server, opts->json, signal_fd);
	server_delete(&server, true); /* files that were offered stay */
	return rc;
}

static int serve_with_secret(struct serve_opts *opts, int signal_fd)
{
	struct secret secret;
	struct error err;
	int rc = CLI_OK;

	if (opts->secret_file) {
		opts->server.secret = &secret;
		if (secret_load(&secret, opts->secret_file, &err))
			rc = cli_report(&err, "");
	}
	if (!rc)
		rc = serve_files(opts, signal_fd);
	secret_forget(&secret);
	return rc;
}

static void print_note(void *arg, const char *text)
{
	cli_note("%s", text);
}

int cmd_serve(int argc, char **argv)
{
	struct serve_opts opts;
	int rc = serve_parse(argc, argv, &opts);
	int signal_fd;

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	signal_fd = block_signals();
	if (signal_fd < 0)
		return cli_fail(CLI_FILE, "signalfd: %s", strerror(errno));
	cli_log_init(opts.server.verbose);
	/* A flush to persistence that cannot be one must fail and not pass. */
	setenv("RPMA_STRICT_PERSIST", "1", 0);
	opts.server.note = print_note;
	rc = serve_with_secret(&opts, signal_fd);
	close(signal_fd);
	return rc;
}
