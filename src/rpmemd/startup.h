/* SPDX-License-Identifier: BSD-3-Clause */
/* startup.h -- the first steps that all tasks of rpmemd share. */
#ifndef RPMEMD_STARTUP_H
#define RPMEMD_STARTUP_H

#include "rpmemd/options.h"

/* Read the configuration files, then the command line. Returns the errors of config_load(). */
int startup_load(const struct options *opts, struct settings *s, struct error *err);
/* Like startup_load(), and open the log. On failure the error is already logged. */
int startup_begin(const struct options *opts, struct settings *s, struct error *err);

#endif
