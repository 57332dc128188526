/* SPDX-License-Identifier: BSD-3-Clause */
/* chan.h -- the event channels that programs see. */
#ifndef INTERPOSER_CHAN_H
#define INTERPOSER_CHAN_H

#include <stdatomic.h>

#include "interposer/words.h"

struct face_chan {
	struct rdma_event_channel pub; /* fd: soft's, or an epoll descriptor of both */
	struct rdma_event_channel *soft, *hard;
	atomic_uint state; /* chan.c: dead or not, and how many threads are inside */
	atomic_bool released;
	bool blocking; /* when it was destroyed */
};

static inline struct face_chan *face_chan_of(struct rdma_event_channel *ch)
{
	return (struct face_chan *)ch;
}

/* The next event and whose it is: 0, or -1 and errno, or never, if the channel was destroyed. */
int face_chan_next(struct face_chan *ch, const struct words **w, struct rdma_cm_event **ev);

#endif
