/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/config.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/keyfile.h"

static int config_set(void *arg, const char *key, const char *value, struct error *err)
{
	return settings_set(arg, key, value, err);
}

static const struct keyfile_reader config_reader = {.set = config_set};

/* Begin the error with the words of upstream's rpmemd, because programs may look for them. */
static int config_name_line(int rc, struct error *err)
{
	return rc == ERROR_ARGUMENT && err ? error_set(err, ERROR_ARGUMENT, EINVAL,
						       "Invalid config file line at %s", err->text)
					   : rc;
}

int config_parse(struct settings *s, const char *text, size_t len, const char *name,
		 struct error *err)
{
	return config_name_line(keyfile_parse(text, len, name, &config_reader, s, err), err);
}

static int config_load_if_present(struct settings *s, const char *path, struct error *err)
{
	struct error why;
	int rc = keyfile_load(path, &config_reader, s, &why);

	if (!rc || (rc == ERROR_LOCAL && (why.cause == ENOENT || why.cause == ENOTDIR)))
		return 0;
	error_set(err, why.kind, why.cause, "%s", why.text);
	return config_name_line(rc, err);
}

int config_load(struct settings *s, const char *path, const char *home, struct error *err)
{
	char users[PATH_MAX];
	int rc;

	if (path)
		return config_name_line(keyfile_load(path, &config_reader, s, err), err);
	rc = config_load_if_present(s, CONFIG_SYSTEM_FILE, err);
	if (rc ||
	    snprintf(users, sizeof(users), "%s/" CONFIG_USER_FILE, home) >= (int)sizeof(users))
		return rc;
	return config_load_if_present(s, users, err);
}

const char *config_home(void)
{
	const char *home = getenv("HOME");
	const struct passwd *pw;

	if (home && home[0])
		return home;
	pw = getpwuid(getuid());
	return pw && pw->pw_dir && pw->pw_dir[0] ? pw->pw_dir : "/";
}
