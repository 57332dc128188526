/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmemd: the daemon of librpmem on the target (rpmemd(1)). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "rpmemd/config.h"
#include "rpmemd/journal.h"
#include "rpmemd/options.h"
#include "rpmemd/remove.h"
#include "rpmemd/run.h"

static int main_prepare(const struct options *opts, struct settings *s, struct error *err)
{
	const char *home = config_home();
	int rc;

	settings_init(s, home);
	rc = config_load(s, opts->config, home, err);
	if (!rc)
		rc = options_apply(opts, s, err);
	if (!rc)
		rc = settings_finish(s, home, err);
	if (!rc)
		rc = journal_open(s, err);
	if (rc)
		LOG_ERROR("%s", err->text);
	return rc;
}

/* Before any thread exists, so that the library's threads inherit the mask. */
static int main_block_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* A lane takes several descriptors. */
static void main_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int main_control(const struct options *opts, struct settings *s)
{
	struct endpoint endpoint;
	struct run_opts run = {.settings = s,
			       .endpoint = &endpoint,
			       .in = STDIN_FILENO,
			       .out = STDOUT_FILENO,
			       .signal_fd = main_block_signals()};
	struct error err;

	if (main_prepare(opts, s, &err)) {
		run_report_failure(STDOUT_FILENO, &err);
		return RUN_ENDED;
	}
	main_raise_limit();
	if (!endpoint_from_ssh(getenv("SSH_CONNECTION"), &endpoint))
		LOG_WARNING("no usable SSH_CONNECTION in the environment: the data path is on %s",
			    endpoint.here);
	return (int)run_session(&run);
}

static int main_remove(const struct options *opts, struct settings *s)
{
	struct error err;

	if (main_prepare(opts, s, &err))
		return err.cause > 0 && err.cause < 255 ? err.cause : EIO;
	return remove_pool(opts, s);
}

static int main_usage(void)
{
	fputs(options_usage, stderr);
	return RUN_MALFORMED;
}

int main(int argc, char **argv)
{
	static struct settings settings;
	struct options opts;
	struct error err;

	journal_begin();
	/* A flush to persistence that cannot be one must fail and not pass. */
	setenv("RPMA_STRICT_PERSIST", "1", 0);
	if (options_parse(&opts, argc, argv, &err)) {
		LOG_ERROR("%s", err.text);
		return main_usage();
	}
	switch (opts.task) {
	case OPTIONS_HELP:
		fprintf(stderr, "%srpmemd version " RPMEMD_VERSION "\n%s", options_usage,
			options_help);
		return 0;
	case OPTIONS_VERSION:
		fputs("rpmemd version " RPMEMD_VERSION "\n", stderr);
		return 0;
	case OPTIONS_REMOVE:
		return main_remove(&opts, &settings);
	case OPTIONS_CONTROL:
		return main_control(&opts, &settings);
	default:
		return main_usage();
	}
}
