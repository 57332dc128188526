/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h -- rpmemd --openmetrics: prints facts about the pools and the service that a separate
 * process can find out. */
#ifndef RPMEMD_METRICS_H
#define RPMEMD_METRICS_H

#include "rpmemd/options.h"

/* Returns the exit code. */
int metrics_run(const struct options *opts, const struct settings *s);

#endif
