/* SPDX-License-Identifier: BSD-3-Clause */
/* monitor.h -- `status --check`: prints a line, and ends with an exit code, in the form of a
 * monitoring plugin. */
#ifndef RPMIRROR_MONITOR_H
#define RPMIRROR_MONITOR_H

#include <stdbool.h>

#include "out.h"

/* Exit codes that monitoring systems expect. */
enum monitor { MONITOR_OK, MONITOR_WARNING, MONITOR_CRITICAL, MONITOR_UNKNOWN };

/* Returns true if the arguments contain --check. Called before the options are parsed, so that a
 * check with a wrong command line ends with MONITOR_UNKNOWN. */
bool monitor_is_asked(char *const *argv);
/* Returns the state of the worst set. */
enum monitor monitor_of(const json_t *sets);
/* Print one line to standard output. */
void monitor_print(const json_t *sets);
void monitor_print_failure(const struct failure *f);

#endif
