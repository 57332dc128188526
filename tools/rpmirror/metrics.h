/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h -- writes the daemon's status as metrics for Prometheus (rpmirror(1), METRICS). */
#ifndef RPMIRROR_METRICS_H
#define RPMIRROR_METRICS_H

#include <jansson.h>

#include "base/openmetrics.h"

/* Write all metrics, without the end mark. sets: the sets of the answer; NULL: the daemon did not
 * answer. */
void metrics_write(struct openmetrics *om, const json_t *sets);

#endif
