/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/startup.h"

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
