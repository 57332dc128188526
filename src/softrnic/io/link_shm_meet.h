/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_meet.h -- how two ends of a connection that are on one host come to share memory
 * (doc/wire.md s6, "Link").
 *
 * The responder listens on a Unix socket of an abstract, random name and sends the name to its peer
 * over the link that they have. The initiator connects. Each sends a nonce over the Unix socket and
 * gets it back over the link: so the process at the other end of the Unix socket is the peer. Then
 * the responder passes the memory. It goes on listening while those that call are not its peer.
 *
 * Nothing here waits. Whatever goes wrong, the connection stays on the link that it has.
 */
#ifndef IO_LINK_SHM_MEET_H
#define IO_LINK_SHM_MEET_H

#include <stdbool.h>

#include "base/shm_state.h"
#include "softrnic/io/link.h"
#include "softrnic/io/link_shm_memory.h"
#include "softrnic/stream/stream.h"

#define SHM_VERSION 1 /* of the steps, the packets and the rings' layout; stated in the HELLO */

struct meet; /* of one connection, whose lock guards it */

enum meet_next {
	MEET_WAIT,   /* for a step of the peer's, or for its socket */
	MEET_SAY,    /* send meet_said() to the peer */
	MEET_DONE,   /* the memory is shared: link_shm_init() */
	MEET_FAILED, /* meet_why() has the reason */
};

/* The source is reported what the socket becomes ready for; then meet_look() is to follow. */
struct meet *meet_new(bool initiator, struct eng_source *src, uint64_t deadline);
void meet_delete(struct meet *m); /* accepts NULL */
void meet_forked(struct meet *m); /* the same in a forked child; accepts NULL */
/* Of the responder: begin. */
enum meet_next meet_begin(struct meet *m);
/* The peer's step. */
enum meet_next meet_on_step(struct meet *m, unsigned step, const uint8_t *token);
/* The socket may be ready for something, or the last step was sent. */
enum meet_next meet_look(struct meet *m);
enum ext_link_step meet_said(const struct meet *m, uint8_t token[EXT_LINK_TOKEN]);
enum shm_state meet_why(const struct meet *m);
bool meet_is_over_at(const struct meet *m, uint64_t now); /* its time is up */

/* What it has come to, of MEET_DONE: the memory, a socket that is watched by the source, and the
 * returned link, which is not initialised, are the caller's. */
struct link *meet_take(struct meet *m, struct shm_memory *memory, int *fd);

#endif
