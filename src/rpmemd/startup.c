/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/startup.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "rpmemd/config.h"
#include "rpmemd/journal.h"

int startup_load(const struct options *opts, struct settings *s, struct error *err)
{
	const char *home = config_home();
	int rc;

	settings_init(s, home);
	rc = config_load(s, opts->config, home, err);
	if (!rc)
		rc = options_apply(opts, s, err);
	return rc ? rc : settings_finish(s, home, err);
}

int startup_begin(const struct options *opts, struct settings *s, struct error *err)
{
	int rc = startup_load(opts, s, err);

	if (!rc)
		rc = journal_open(s, err);
	if (rc)
		LOG_ERROR("%s", err->text);
	else
		LOG_INFO("rpmemd version " RPMEMD_VERSION);
	return rc;
}

int startup_block_signals(const int *signals, unsigned count)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error like others */
	sigemptyset(&set);
	for (unsigned i = 0; i < count; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void startup_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}
