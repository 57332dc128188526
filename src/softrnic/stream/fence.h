/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fence.h -- lists the connections that this process has accepted, and cuts those that a later
 * connection names as given up (doc/wire.md s6, "Origin"). Each connection identifies itself by its
 * ORIGIN ("names itself"). A *question* is an ORIGIN that asks this process to cut former
 * connections.
 *
 * A question may name a connection whose own ORIGIN has not arrived yet, for example because the
 * initiator was killed while the ORIGIN was on its way. So a question is kept as long as any older
 * connection has not named itself. If an older connection then names itself, and the question asks
 * for this connection, the connection is cut. When the table is full, the oldest connections that
 * have not named themselves are cut immediately, so that a silent connection cannot block later
 * questions.
 *
 * Pure. The owner calls all functions under one lock, and provides the memory of each struct
 * fence_member.
 */
#ifndef STREAM_FENCE_H
#define STREAM_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "softrnic/proto/ext_origin.h"
#include "softrnic/stream/stream.h"

#define FENCE_QUESTIONS_MAX 1024u /* limit of questions in the table; each takes about 1 KiB */
/* limit of questions of one connection, which is enough for about 4,000 ranges */
#define FENCE_ASKS_MAX 64u

/* A connection, from the reply to its request until it is closed. */
struct fence_member {
	struct list link; /* empty: the connection is not in the table */
	/* times of arrival and of naming itself; known_at 0: not named yet */
	uint64_t arrived, known_at;
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
	 * Functions of the owner. They are called with the owner's lock, so they only schedule
	 * work. `cut` ends this connection. `wake` reports that all connections that this
	 * connection's question named are closed.
	 */
	void (*cut)(struct fence_member *m);
	void (*wake)(struct fence_member *m);
};

void fences_init(struct fences *all, void (*cut)(struct fence_member *),
		 void (*wake)(struct fence_member *));
void fences_reset(struct fences *all); /* forget all entries; called in a forked child */
void fence_member_init(struct fence_member *m);
void fence_arrive(struct fences *all, struct fence_member *m);
/* Remove a connection that will not name itself, because its peer does not take part in the
 * barrier. */
void fence_pass(struct fences *all, struct fence_member *m);
enum stream_fence fence_identify(struct fences *all, struct fence_member *m,
				 const struct ext_origin *origin);
/* Remove a connection. Called when the connection is closed, so that none of its bytes can be
 * placed any more. */
void fence_leave(struct fences *all, struct fence_member *m);

#endif
