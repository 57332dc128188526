/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_meet.h -- how the two ends of a connection within one host share memory (doc/wire.md s6,
 * "Link").
 *
 * The responder listens on a Unix socket with an abstract, random name, and sends the name to its
 * peer over the existing link. The initiator connects. Each end sends a nonce over the Unix socket,
 * and the peer returns the nonce over the link. This proves that the process at the other end of
 * the Unix socket is the peer. Then the responder passes the memory. It continues to listen while
 * other callers come.
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

#define SHM_VERSION 1 /* version of steps, packets and rings' layout, as in the HELLO */

struct meet; /* belongs to one connection, whose lock guards it */

enum meet_next {
	MEET_WAIT,   /* wait for a step of the peer, or for its socket */
	MEET_SAY,    /* send meet_said() to the peer */
	MEET_DONE,   /* the memory is shared: link_shm_init() */
	MEET_FAILED, /* meet_why() has the reason */
};

/* Make a meeting. The source watches its socket; after each event meet_look() must follow. */
struct meet *meet_new(bool initiator, struct eng_source *src, uint64_t deadline);
void meet_delete(struct meet *m); /* accepts NULL */
void meet_forked(struct meet *m); /* as meet_delete(), in a forked child; accepts NULL */
/* The responder begins. */
enum meet_next meet_begin(struct meet *m);
/* The peer's step has arrived. */
enum meet_next meet_on_step(struct meet *m, unsigned step, const uint8_t *token);
/* The socket may be ready, or the last step was sent. */
enum meet_next meet_look(struct meet *m);
enum ext_link_step meet_said(const struct meet *m, uint8_t token[EXT_LINK_TOKEN]);
enum shm_state meet_why(const struct meet *m);
bool meet_is_over_at(const struct meet *m, uint64_t now); /* the time limit has passed */

/* The result after MEET_DONE. The caller owns the memory, the socket, which the source watches, and
 * the returned link, which is not initialised. */
struct link *meet_take(struct meet *m, struct shm_memory *memory, int *fd);

#endif
