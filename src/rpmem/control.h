/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h -- the control stream of a pool: a session with a daemon, through ssh or direct.
 *
 * Requests may come from several threads; each waits for its turn. The first failure of the stream
 * is final. In a forked process the descriptors are closed, and the parent's session goes on.
 */
#ifndef RPMEM_CONTROL_H
#define RPMEM_CONTROL_H

#include "rpmem/target.h"
#include "rpmem/wire/stream.h"

struct control;

/* ipv4: make ssh use IPv4. On return the daemon is ready. 0 or an errno. */
int control_open(const struct target *target, bool ipv4, struct control **control);
/*
 * Send a request and wait for its answer, whose text is printable. Returns 0, or an errno if the
 * stream failed or the daemon refused; the thread's text has the reason. *answer is zero unless an
 * answer has come.
 */
int control_request(struct control *c, enum wire_type type, const uint8_t *body, size_t len,
		    struct wire_answer *answer);
/* Get the lane key of a direct session. Returns false over ssh, where the answer has the key. */
bool control_lane_key(const struct control *c, struct wire_key *key);
/* Has the stream failed? If not, a failed request was refused. */
bool control_has_failed(struct control *c);
/* Is this process a fork of the process that opened the stream? */
bool control_is_inherited(const struct control *c);
/* End the session without a message to the daemon. NULL is no error. */
void control_close(struct control *c);

#endif
