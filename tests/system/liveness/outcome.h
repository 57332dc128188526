/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h -- how a connection to a silent peer ends, and when. */
#ifndef SYSTEM_LIVENESS_OUTCOME_H
#define SYSTEM_LIVENESS_OUTCOME_H

#include "system/lib/client.h"
#include "system/lib/remote.h"

#define LIMIT_MS 1500 /* SOFTRNIC_LIVENESS_MS of these tests */
/* The limit and a third, and what a loaded machine may need on top: an end that was not running
 * itself begins to count anew. */
#define AT_MOST_MS (LIMIT_MS + LIMIT_MS / 3 + 8000)

/* An operation that the silent peer would have to answer. */
void post_read(struct client *c);
/* It fails, and the connection is lost, at the limit counted from `begun` or not long after. */
void expect_lost(struct client *c, uint64_t begun);
/* What the target reports about its connections. */
void expect_target_lost(struct remote *target, int n);
int target_lost(struct remote *target); /* how many it has reported so far */

#endif
