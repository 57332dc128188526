/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.h -- the connections that this process has accepted, each with the identity that its
 * initiator gave it, and the questions of later ones that name them (doc/wire.md s6, "Origin").
 *
 * A question may name a connection whose own ORIGIN has not arrived: its peer was killed, for
 * example, and the bytes are on their way. So a question is kept as long as an older connection has
 * not named itself. If that connection then names itself as one of the question's, it is cut. When
 * the table is full, the oldest unnamed connections are cut at once, so that a silent connection
 * cannot block later questions.
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
#define FENCE_ASKS_MAX      64u   /* questions of one connection: about 4,000 ranges */

/* A connection, from the reply to its request until it is closed. */
struct fence_member {
	struct list link;           /* empty: it is not in the table */
	uint64_t arrived, known_at; /* known_at 0: the connection has not named itself yet */
	uint64_t serial;
	unsigned n_asked;
	bool is_cut; /* the connection was cut before it named itself */
	uint8_t id[EXT_ID_LEN];
	bool has_owner;
	uint8_t owner[EXT_ID_LEN];
};

struct fences {
	/* connections that have not named themselves, in the order of arrival */
	struct list unknown;
	struct list members;   /* all other connections */
	struct list questions; /* questions, the oldest first */
	unsigned n_questions;
	uint64_t clock;
	/*
	 * Functions of the owner. They are called with its lock, so they only schedule work. cut:
	 * end this connection. wake: all connections that this connection's question named are
	 * closed.
	 */
	void (*cut)(struct fence_member *m);
	void (*wake)(struct fence_member *m);
};

void fences_init(struct fences *all, void (*cut)(struct fence_member *),
		 void (*wake)(struct fence_member *));
void fences_reset(struct fences *all); /* forget all, in a forked child */
void fence_member_init(struct fence_member *m);
void fence_arrive(struct fences *all, struct fence_member *m);
/* The connection will not name itself: its peer does not take part. */
void fence_pass(struct fences *all, struct fence_member *m);
enum stream_fence fence_identify(struct fences *all, struct fence_member *m,
				 const struct ext_origin *origin);
/* The connection is closed: none of its bytes can be placed any more. */
void fence_leave(struct fences *all, struct fence_member *m);

#endif
