/* SPDX-License-Identifier: BSD-3-Clause */
/* outcome.h -- check how and when a connection to a silent peer ends. */
#ifndef SYSTEM_LIVENESS_OUTCOME_H
#define SYSTEM_LIVENESS_OUTCOME_H

#include "system/lib/client.h"
#include "system/lib/remote.h"

#define LIMIT_MS 1500 /* SOFTRNIC_LIVENESS_MS of these tests */
/* The limit and a third of it, plus time for a busy machine: an end that did not run for some time
 * restarts the limit. */
#define AT_MOST_MS (LIMIT_MS + LIMIT_MS / 3 + 8000)

/* Post an operation that needs an answer from the peer, which is now silent. */
void post_read(struct client *c);
/* Expect that the operation fails and the connection is lost, at the limit (counted from `begun`)
 * or soon after it. */
void expect_lost(struct client *c, uint64_t begun);
/* Check that the target has reported the loss of its n connections. */
void expect_target_lost(struct remote *target, int n);
int target_lost(struct remote *target); /* returns how many losses the target has reported so far */

#endif
