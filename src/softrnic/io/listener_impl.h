/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener_impl.h -- what listener.c and handshake.c share and no other file uses.
 *
 * A listener's lock is inner to the connections' locks.
 */
#ifndef IO_LISTENER_IMPL_H
#define IO_LISTENER_IMPL_H

#include <pthread.h>

#include "softrnic/io/admission.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/listener.h"

struct listener {
	struct eng_source source;
	struct eng_timer retry; /* descriptors ran out, or the turn was over */
	struct eng_timer admit; /* a held connection may be served */
	struct admission admission;
	uint64_t admit_at; /* what it was set to */
	listener_request_fn *request;
	void *owner;
	bool meets; /* listener_open_meeting() */
	struct link *link;
	pthread_mutex_t lock; /* of these: */
	bool closed;
	struct list handshakes;
	unsigned n_handshakes;
};

/* handshake.c */
/* A handshake on an accepted link, which is taken over in any case. */
void handshake_begin(struct listener *l, struct link *link);
/* All that are under way; the listener is marked as closed. */
void handshakes_end(struct listener *l);

#endif
