/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h -- the control stream of a pool: a session with a daemon, over ssh or over a direct
 * connection.
 *
 * Several threads may make requests; the requests are sent one after the other. The first failure
 * of the stream is final. A forked process closes its copies of the descriptors, and the parent's
 * session continues.
 */
#ifndef RPMEM_CONTROL_H
#define RPMEM_CONTROL_H

#include "rpmem/target.h"
#include "rpmem/wire/stream.h"

struct control;

/* Start the session. ipv4: make ssh use IPv4. On return the daemon is ready. Returns 0 or an
 * errno. */
int control_open(const struct target *target, bool ipv4, struct control **control);
/*
 * Send a request and wait for its answer, whose text is printable. Returns 0, or an errno if the
 * stream failed or the daemon refused; the calling thread's error text has the reason. *answer is
 * zero unless an answer has come.
 */
int control_request(struct control *c, enum wire_type type, const uint8_t *body, size_t len,
		    struct wire_answer *answer);
/* Get the lane key of a direct session. Returns false over ssh, where the answer to CREATE or OPEN
 * has the key. */
bool control_lane_key(const struct control *c, struct wire_key *key);
/* Returns true if the stream has failed. Otherwise a failed request was refused by the daemon. */
bool control_has_failed(struct control *c);
/* Returns true if this process is a fork of the process that opened the stream. */
bool control_is_inherited(const struct control *c);
/* End the session without a message to the daemon. c may be NULL. */
void control_close(struct control *c);

#endif
