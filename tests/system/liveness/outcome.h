/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h -- how and when a connection to a silent peer ends. */
#ifndef SYSTEM_LIVENESS_OUTCOME_H
#define SYSTEM_LIVENESS_OUTCOME_H

#include "system/lib/client.h"
#include "system/lib/remote.h"

#define LIMIT_MS 1500 /* SOFTRNIC_LIVENESS_MS of these tests */
/*
 * The limit and a third, plus time for a loaded machine: an end that did not run itself begins to
 * count anew.
 */
#define AT_MOST_MS (LIMIT_MS + LIMIT_MS / 3 + 8000)

/* Post an operation that the silent peer has to answer. */
void post_read(struct client *c);
/*
 * The operation fails and the connection is lost, at or soon after the limit, counted from `begun`.
 */
void expect_lost(struct client *c, uint64_t begun);
/* Check the target's reports about its connections. */
void expect_target_lost(struct remote *target, int n);
int target_lost(struct remote *target); /* number of losses reported so far */

#endif
