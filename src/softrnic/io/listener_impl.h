/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener_impl.h -- what listener.c and embryo.c share and nobody else uses.
 *
 * A listener's lock is inner to the connections' locks.
 */
#ifndef ENGINE_LISTENER_IMPL_H
#define ENGINE_LISTENER_IMPL_H

#include "softrnic/io/door.h"
#include "softrnic/io/listener.h"

struct listener {
	struct eng_source source;
	struct eng_timer retry; /* descriptors ran out, or the turn was over */
	struct eng_timer admit; /* somebody's time at the door is over */
	struct door door;
	uint64_t admit_at; /* what it was set to */
	struct cmid *id;
	int fd;
	pthread_mutex_t lock; /* of these: */
	bool closed;
	struct list embryos;
	unsigned n_embryos;
	/* With pending_lock, as child->parent. */
	struct list pending; /* children */
	unsigned backlog, n_pending;
};

/* listener.c: one more request that waits for the user; false: the backlog is full. */
bool listener_add_request(struct listener *l, struct cmid *child);

/* embryo.c */
/* A handshake on an accepted socket, which is taken over in any case. */
void embryo_begin(struct listener *l, int fd);
/* All that are under way; the listener is marked as closed. */
void embryos_end(struct listener *l);

#endif
