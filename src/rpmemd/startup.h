/* SPDX-License-Identifier: BSD-3-Clause */
/* startup.h -- what each of rpmemd's tasks begins with. */
#ifndef RPMEMD_STARTUP_H
#define RPMEMD_STARTUP_H

#include "rpmemd/options.h"

/* Configuration files, then the command line. The kinds of config_load(). */
int startup_load(const struct options *opts, struct settings *s, struct error *err);
/* That, and the log. The error has been logged. */
int startup_begin(const struct options *opts, struct settings *s, struct error *err);

#endif
