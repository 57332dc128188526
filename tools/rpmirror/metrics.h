/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h -- the daemon's status as metrics for Prometheus (rpmirror(1), METRICS). */
#ifndef RPMIRROR_METRICS_H
#define RPMIRROR_METRICS_H

#include <jansson.h>

#include "base/openmetrics.h"

/* sets: the sets of the answer; NULL: the daemon did not answer. Writes everything except the
 * end mark. */
void metrics_write(struct openmetrics *om, const json_t *sets);

/* Name and help of the family with this index; NULL after the last one. */
const struct openmetrics_family *metrics_family(unsigned index);

#endif
