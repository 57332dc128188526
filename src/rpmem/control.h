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

/* ipv4: have ssh use IPv4. The daemon is ready then. 0 or an errno. */
int control_open(const struct target *target, bool ipv4, struct control **control);
/*
 * Send a request and wait for its answer, whose text can be printed. 0; an errno: the stream
 * failed, or the daemon refused, with words. *answer is zero unless it has come.
 */
int control_request(struct control *c, enum wire_type type, const uint8_t *body, size_t len,
		    struct wire_answer *answer);
/* Of the direct way; over ssh the answer brings it. */
bool control_lane_key(const struct control *c, struct wire_key *key);
/* Has the stream failed? Then a failed request was no refusal. */
bool control_has_failed(struct control *c);
/* Is this a forked process, which is not the one that opened it? */
bool control_is_inherited(const struct control *c);
/* End the session, without a word to the daemon. NULL is no error. */
void control_close(struct control *c);

#endif
