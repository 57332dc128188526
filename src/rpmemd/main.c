/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmemd: the daemon of librpmem on the target (rpmemd(1)). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log_prefix.h"
#include "rpmemd/connection.h"
#include "rpmemd/journal.h"
#include "rpmemd/listener.h"
#include "rpmemd/metrics.h"
#include "rpmemd/remove.h"
#include "rpmemd/run.h"
#include "rpmemd/startup.h"
#include "service/manager.h"
#include "service/process.h"

static int main_control(const struct options *opts, struct settings *s)
{
	static const int signals[] = {SIGINT, SIGTERM};
	struct endpoint endpoint;
	struct run_opts run = {.settings = s,
			       .endpoint = &endpoint,
			       .in = STDIN_FILENO,
			       .out = STDOUT_FILENO,
			       .signal_fd = process_take_signals(signals, 2)};
	struct error err;

	if (startup_begin(opts, s, &err)) {
		run_report_failure(STDOUT_FILENO, &err);
		return RUN_ENDED;
	}
	process_raise_limit();
	if (!endpoint_from_ssh(getenv("SSH_CONNECTION"), &endpoint))
		LOG_WARNING("no usable SSH_CONNECTION in the environment: the data path is on %s",
			    endpoint.here);
	return (int)run_session(&run);
}

/* The initiator's library treats the exit code as an errno. */
static int main_remove(const struct options *opts, struct settings *s)
{
	struct error err;

	if (startup_begin(opts, s, &err))
		return err.cause > 0 && err.cause < RUN_MALFORMED ? err.cause : EIO;
	return remove_pool(opts, s);
}

static int main_metrics(const struct options *opts, struct settings *s)
{
	struct error err;

	/* Keep the log on standard error: the daemon's log file may belong to another user. */
	if (startup_load(opts, s, &err)) {
		LOG_ERROR("%s", err.text);
		return RUN_ENDED;
	}
	return metrics_run(opts, s);
}

static int main_print_help(void)
{
	fprintf(stderr, "%srpmemd version " RPMEMD_VERSION "\n%s", options_usage, options_help);
	return 0;
}

static int main_print_version(void)
{
	fputs("rpmemd version " RPMEMD_VERSION "\n", stderr);
	return 0;
}

int main(int argc, char **argv)
{
	static struct settings settings;
	struct options opts;
	struct error err;

	journal_begin();
	manager_begin();
	/* If the memory cannot be persistent, a persistent flush must fail. */
	setenv("RPMA_STRICT_PERSIST", "1", 0);
	if (options_parse(&opts, argc, argv, &err)) {
		LOG_ERROR("%s", err.text);
		fprintf(stderr, "%s%s", log_prefix(LOG_LVL_ERROR), options_usage);
		return RUN_MALFORMED;
	}
	switch (opts.task) {
	case OPTIONS_HELP:
		return main_print_help();
	case OPTIONS_VERSION:
		return main_print_version();
	case OPTIONS_REMOVE:
		return main_remove(&opts, &settings);
	case OPTIONS_METRICS:
		return main_metrics(&opts, &settings);
	case OPTIONS_LISTEN:
		return listener_run(&opts, &settings);
	case OPTIONS_WORKER:
		return connection_run(&opts, &settings);
	case OPTIONS_CONTROL:
		return main_control(&opts, &settings);
	}
	return RUN_MALFORMED;
}
