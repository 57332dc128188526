/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics.h -- the daemon's status as metrics for Prometheus (rpmirror(1), METRICS). */
#ifndef RPMIRROR_METRICS_H
#define RPMIRROR_METRICS_H

#include <jansson.h>

#include "base/openmetrics.h"

/* sets: of the answer; NULL: the daemon did not answer. Writes all but the end. */
void metrics_write(struct openmetrics *om, const json_t *sets);

/* Name and help of each family; NULL: there are no more. */
const struct openmetrics_family *metrics_family(unsigned index);

#endif
