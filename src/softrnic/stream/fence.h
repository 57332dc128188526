/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.h -- the connections that this process has accepted, by the identity that their initiators
 * gave them, and which of them a later one has named (doc/wire.md s6, "Origin").
 *
 * A connection may be named before its own ORIGIN was received: the peer is killed, say, and what
 * it has sent is still on its way. So a question is remembered as long as there is a connection,
 * older than it, that has not named itself; it is cut when it does. If more would have to be
 * remembered than there is room for, the oldest of these connections are cut at once, so that one
 * which never names itself keeps no other one from asking.
 *
 * Pure. The owner has a lock around all of it, and the memory of each struct fence_member.
 */
#ifndef STREAM_FENCE_H
#define STREAM_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/proto/ext_origin.h"
#include "softrnic/stream/stream.h"

#define FENCE_QUESTIONS_MAX 1024u /* about 1 KiB each */
#define FENCE_ASKS_MAX      64u   /* of one connection: about 4,000 ranges; the next goes on */

/* A connection, from the reply to its request until it is closed. */
struct fence_member {
	struct list link;           /* empty: it is not in the table */
	uint64_t arrived, known_at; /* known_at 0: it has not named itself */
	uint64_t serial;
	unsigned n_asked;
	bool is_cut; /* before it has named itself */
	uint8_t id[EXT_ID_LEN];
	bool has_owner;
	uint8_t owner[EXT_ID_LEN];
};

struct fences {
	struct list unknown;   /* not named yet, in the order of arrival */
	struct list members;   /* all others */
	struct list questions; /* ascending by time */
	unsigned n_questions;
	uint64_t clock;
	/* Of the owner, which leaves the rest for later: the lock is held. End this connection; all
	 * that this one's question named are cut. */
	void (*cut)(struct fence_member *m);
	void (*wake)(struct fence_member *m);
};

void fences_init(struct fences *all, void (*cut)(struct fence_member *),
		 void (*wake)(struct fence_member *));
void fences_reset(struct fences *all); /* forget all, in a forked child */
void fence_member_init(struct fence_member *m);
void fence_arrive(struct fences *all, struct fence_member *m);
/* It will not name itself: its peer does not take part. */
void fence_pass(struct fences *all, struct fence_member *m);
enum stream_fence fence_identify(struct fences *all, struct fence_member *m,
				 const struct ext_origin *origin);
/* It is closed: nothing of it can be placed any more. */
void fence_leave(struct fences *all, struct fence_member *m);

#endif
