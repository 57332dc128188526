/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma serve: serves files as remote memory. src/regions serves them; this file prints, and
 * handles signals. */
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
#include "progress.h"
#include "service/manager.h"
#include "service/process.h"

static void serve_announce_text(const struct server *server)
{
	struct server_region_info r;
	char text[ADDRESS_TEXT];

	for (unsigned i = 0; server_get_region(server, i, &r); i++)
		printf("serving region '%s' at %s: %s of %s, durability %s\n", r.name,
		       address_show(server_get_address(server), text), text_size(r.size).text,
		       r.path, rpma_utils_durability_2str(r.durability));
}

static void serve_announce_json(const struct server *server, bool has_secret)
{
	const struct address *at = server_get_address(server);
	struct server_region_info r;

	cli_json_string("{\"addr\":", at->host);
	printf(",\"port\":%s,\"secret\":%s,\"regions\":[", at->port, has_secret ? "true" : "false");
	for (unsigned i = 0; server_get_region(server, i, &r); i++) {
		fputs(i ? "," : "", stdout);
		cli_json_string("{\"region\":", r.name);
		cli_json_string(",\"file\":", r.path);
		printf(",\"size\":%" PRIu64 ",\"durability\":\"%s\"}", r.size,
		       rpma_utils_durability_2str(r.durability));
	}
	puts("]}");
}

static void serve_report_ready(const struct server *server)
{
	struct server_region_info r;
	char text[ADDRESS_TEXT];
	unsigned count = 0;

	while (server_get_region(server, count, &r))
		count++;
	manager_ready("at %s, regions: %u", address_show(server_get_address(server), text), count);
}

/* Connected clients stay connected. Later clients need the new secret. */
static void serve_reload_secret(struct serve_opts *opts)
{
	struct secret secret;
	struct error err;

	if (!opts->secret_file) {
		cli_note(LOG_LVL_NOTICE, "SIGHUP: there is no secret file to read again");
	} else if (secret_load(&secret, opts->secret_file, &err)) {
		cli_note(LOG_LVL_ERROR, "SIGHUP: the secret stays as it was: %s", err.text);
	} else {
		opts->secret = secret;
		cli_note(LOG_LVL_NOTICE, "SIGHUP: secret file %s was read again",
			 opts->secret_file);
	}
	secret_forget(&secret);
}

/* Handle a signal. Returns true if the program has to end. */
static bool serve_on_signal(const struct server *server, struct serve_opts *opts, int signal_fd)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
		return false;
	switch (info.ssi_signo) {
	case SIGUSR1:
		serve_print_counters(server, opts->json);
		return false;
	case SIGHUP:
		manager_reloading();
		serve_reload_secret(opts);
		manager_reloaded();
		return false;
	default:
		return true;
	}
}

static int serve_loop(struct server *server, struct serve_opts *opts, int signal_fd)
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
		    serve_on_signal(server, opts, signal_fd))
			return CLI_OK;
	}
}

/* Call this before any thread exists, so that the library's threads inherit the mask. */
static int serve_block_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
	struct sigaction hangup;
	bool is_ignored = !sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler == SIG_IGN;

	/* Keep SIGHUP ignored if nohup(1) ignores it. */
	return process_take_signals(signals, is_ignored ? 3 : 4);
}

/* Called between the steps that create the files, to check for a signal to end. A signal that
 * comes later stays pending for the loop. */
static bool serve_is_to_end(void)
{
	sigset_t set;

	return !sigpending(&set) && (sigismember(&set, SIGINT) || sigismember(&set, SIGTERM));
}

/* The progress bar of one step on one file. */
struct making {
	struct progress bar;
	const char *path, *what;
};

static bool serve_show_making(void *arg, const struct newfile_progress *now)
{
	struct making *m = arg;

	if (now->path != m->path || now->what != m->what) {
		progress_end(&m->bar);
		progress_begin(&m->bar, now->what, now->total);
		m->path = now->path;
		m->what = now->what;
	}
	progress_show(&m->bar, now->done);
	return !serve_is_to_end();
}

/* Returns advice that names options of this tool. */
static const char *serve_hint_for(const struct server_opts *opts, const struct error *err)
{
	if (err->cause == EEXIST && opts->create)
		return "; leave out --create to serve it as it is";
	if ((err->cause == ENOENT || err->cause == ENODATA) && !opts->create)
		return "; use --create --size to make it";
	if (err->cause == EMEDIUMTYPE)
		return "; --allow-volatile serves it all the same";
	return "";
}

static int serve_make_server(struct serve_opts *opts, struct server **server, struct error *err)
{
	struct making making = {.path = NULL};
	struct newfile_watch watch = {serve_show_making, &making};
	int rc;

	opts->server.watch = &watch;
	rc = server_new(&opts->server, server, err);
	opts->server.watch = NULL;
	progress_end(&making.bar);
	return rc;
}

static void serve_warn_if_open_to_all(const struct server *server, const struct serve_opts *opts)
{
	const struct address *at = server_get_address(server);
	char text[ADDRESS_TEXT];

	if (opts->server.secret || address_is_loopback(at))
		return;
	cli_note(LOG_LVL_WARNING,
		 "warning: %s requires no secret, so every client that reaches this port may read "
		 "and overwrite the regions; --secret-file admits only clients that know a secret, "
		 "--addr 127.0.0.1 only this machine",
		 address_show(at, text));
}

static int serve_files(struct serve_opts *opts, int signal_fd)
{
	struct server *server;
	struct error err;
	int rc = serve_make_server(opts, &server, &err);

	if (rc && err.cause == ECANCELED)
		/* a signal during the start ends the server, as a later signal does */
		return CLI_OK;
	if (rc)
		return cli_report(&err, serve_hint_for(&opts->server, &err));
	serve_warn_if_open_to_all(server, opts);
	if (opts->json)
		serve_announce_json(server, opts->server.secret);
	else
		serve_announce_text(server);
	fflush(stdout);
	serve_report_ready(server);
	rc = serve_loop(server, opts, signal_fd);
	manager_stopping();
	/* keep the files, because clients could already write to them */
	server_delete(&server, true);
	return rc;
}

static int serve_with_secret(struct serve_opts *opts, int signal_fd)
{
	struct error err;
	int rc = CLI_OK;

	if (opts->secret_file) {
		opts->server.secret = &opts->secret;
		if (secret_load(&opts->secret, opts->secret_file, &err))
			rc = cli_report(&err, "");
	}
	if (!rc)
		rc = serve_files(opts, signal_fd);
	secret_forget(&opts->secret);
	return rc;
}

static void serve_print_note(void *arg, enum log_level level, const char *text)
{
	cli_note(level, "%s", text);
}

int cmd_serve(int argc, char **argv)
{
	struct serve_opts opts;
	int rc = serve_parse(argc, argv, &opts);
	int signal_fd;

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	signal_fd = serve_block_signals();
	if (signal_fd < 0)
		return cli_fail(CLI_FILE, "signalfd: %s", strerror(errno));
	cli_log_init(opts.server.verbose);
	manager_begin();
	/* If the memory cannot be persistent, a flush to persistence must fail. */
	setenv("RPMA_STRICT_PERSIST", "1", 0);
	opts.server.note = serve_print_note;
	rc = serve_with_secret(&opts, signal_fd);
	close(signal_fd);
	return rc;
}
