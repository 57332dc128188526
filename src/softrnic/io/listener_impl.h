/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listener_impl.h -- declarations that only listener.c and handshake.c use.
 *
 * A listener's lock may be taken inside a connection's lock.
 */
#ifndef IO_LISTENER_IMPL_H
#define IO_LISTENER_IMPL_H

#include <pthread.h>

#include "softrnic/io/admission.h"
#include "softrnic/io/engine.h"
#include "softrnic/io/listener.h"

struct listener {
	struct eng_source source;
	/* set if no descriptor was free, or if ACCEPTS_MAX connections were accepted in a row */
	struct eng_timer retry;
	struct eng_timer admit; /* set for the time at which a held connection may be served */
	struct admission admission;
	uint64_t admit_at; /* the time to which `admit` was set */
	listener_request_fn *request;
	void *owner;
	bool meets; /* made by listener_open_meeting() */
	struct link *link;
	pthread_mutex_t lock; /* guards the following members */
	bool closed;
	struct list handshakes;
	unsigned n_handshakes;
};

/* in handshake.c: */
/* Begin a handshake on an accepted link. The function takes over the link even if it fails. */
void handshake_begin(struct listener *l, struct link *link);
/* End all handshakes. The listener must already be marked as closed. */
void handshakes_end(struct listener *l);

#endif
