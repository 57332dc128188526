/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h -- rpmemd --openmetrics: what can be known of the pools and the service from outside. */
#ifndef RPMEMD_METRICS_H
#define RPMEMD_METRICS_H

#include "rpmemd/options.h"

/* Returns the exit code. */
int metrics_run(const struct options *opts, const struct settings *s);

#endif
