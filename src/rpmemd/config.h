/* SPDX-License-Identifier: BSD-3-Clause */
/* config.h -- reads configuration files: lines of the form "key = value" (rpmemd.conf(5)). */
#ifndef RPMEMD_CONFIG_H
#define RPMEMD_CONFIG_H

#include <stddef.h>

#include "rpmemd/settings.h"

#define CONFIG_SYSTEM_FILE "/etc/rpmemd/rpmemd.conf"
#define CONFIG_USER_FILE   ".rpmemd.conf" /* in the user's folder */

/*
 * Parse the len bytes of text; an error quotes name. ERROR_ARGUMENT with EINVAL: a line is
 * malformed, or its key or value is wrong. The lines before the wrong line have been applied.
 */
int config_parse(struct settings *s, const char *text, size_t len, const char *name,
		 struct error *err);

/*
 * path: read only this file, which must exist. NULL: read the system's file and then the user's
 * file, if they exist. Returns an error of config_parse(), or ERROR_LOCAL with its errno as cause.
 */
int config_load(struct settings *s, const char *path, const char *home, struct error *err);

/*
 * Returns HOME, or the folder in the user database, or "/". The text is static or belongs to the
 * environment.
 */
const char *config_home(void);

#endif
