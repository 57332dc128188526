/* SPDX-License-Identifier: BSD-3-Clause */
/* monitor.h -- `status --check`: a line and an exit code as of a monitoring plugin. */
#ifndef RPMIRROR_MONITOR_H
#define RPMIRROR_MONITOR_H

#include <stdbool.h>

#include "out.h"

/* The numbers that monitoring systems know. */
enum monitor { MONITOR_OK, MONITOR_WARNING, MONITOR_CRITICAL, MONITOR_UNKNOWN };

/* Called before the options are parsed, so that a wrong command line of a check ends with
 * MONITOR_UNKNOWN. */
bool monitor_is_asked(char *const *argv);
/* The worst set counts. */
enum monitor monitor_of(const json_t *sets);
/* One line on standard output. */
void monitor_print(const json_t *sets);
void monitor_print_failure(const struct failure *f);

#endif
