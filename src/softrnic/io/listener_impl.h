/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener_impl.h -- declarations that only listener.c and handshake.c use.
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
	struct eng_timer retry; /* set when descriptors ran out, or a turn ended */
	struct eng_timer admit; /* set for the time when a held connection may be served */
	struct admission admission;
	uint64_t admit_at; /* the time to which `admit` was set */
	listener_request_fn *request;
	void *owner;
	bool meets; /* listener_open_meeting() */
	struct link *link;
	pthread_mutex_t lock; /* guards these members: */
	bool closed;
	struct list handshakes;
	unsigned n_handshakes;
};

/* handshake.c */
/* Begin a handshake on an accepted link, which the call takes over in any case. */
void handshake_begin(struct listener *l, struct link *link);
/* End all handshakes; the listener is already marked as closed. */
void handshakes_end(struct listener *l);

#endif
