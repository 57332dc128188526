/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_meet.h -- how the two ends of a connection within one host share memory (doc/wire.md s6,
 * "Link").
 *
 * The responder listens on a Unix socket with an abstract, random name, and sends the name to its
 * peer over the existing link. The initiator connects. Each end sends a nonce over the Unix socket,
 * and the peer returns the nonce over the link. This proves that the process at the other end of
 * the Unix socket is the peer. The responder then passes the memory. Callers that are not the peer
 * are closed, and the responder continues to listen.
 *
 * No function waits. After any failure the connection stays on its existing link.
 */
#ifndef IO_LINK_SHM_MEET_H
#define IO_LINK_SHM_MEET_H

#include <stdbool.h>

#include "base/shm_state.h"
#include "softrnic/io/link.h"
#include "softrnic/io/link_shm_memory.h"
#include "softrnic/stream/stream.h"

/* version of steps, packets and the layout of the rings; the HELLO states it */
#define SHM_VERSION 1

struct meet; /* belongs to one connection; this connection's lock guards it */

enum meet_next {
	MEET_WAIT,   /* wait for a step of the peer, or for an event of the socket */
	MEET_SAY,    /* send the peer the step that meet_said() returns */
	MEET_DONE,   /* the memory is shared: call link_shm_init() */
	MEET_FAILED, /* the meeting has failed; meet_why() returns the reason */
};

/* Make a meeting. The source watches the meeting's socket; after each event the caller must call
 * meet_look(). */
struct meet *meet_new(bool initiator, struct eng_source *src, uint64_t deadline);
void meet_delete(struct meet *m); /* accepts NULL */
void meet_forked(struct meet *m); /* does the same in a forked child; accepts NULL */
/* Begin the meeting at the responder. */
enum meet_next meet_begin(struct meet *m);
/* Called when a step of the peer has arrived. */
enum meet_next meet_on_step(struct meet *m, unsigned step, const uint8_t *token);
/* Continue the meeting. Called when the socket may be ready, and after the last step was sent. */
enum meet_next meet_look(struct meet *m);
enum ext_link_step meet_said(const struct meet *m, uint8_t token[EXT_LINK_TOKEN]);
enum shm_state meet_why(const struct meet *m);
bool meet_is_over_at(const struct meet *m, uint64_t now); /* has the time limit passed? */

/* Take the result after MEET_DONE. The caller owns the memory, the socket `fd`, which the source
 * still watches, and the returned link, which is not initialised yet. */
struct link *meet_take(struct meet *m, struct shm_memory *memory, int *fd);

#endif
