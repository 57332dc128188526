/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h -- a stream with a queue pair, the events that it can get, and the states that it can be
 * in.
 */
#ifndef TEST_STREAM_WALK_H
#define TEST_STREAM_WALK_H

#include "link.h"

extern struct walk {
	struct link link;
	struct side *me;
	bool aborted, connected; /* calls that the user has made */
} walk;

/* How to bring a stream from IDLE to a state. */
struct place {
	enum stream_role role;
	enum stream_state state;
	void (*reach)(void);
};

extern void (*const walk_events[])(void);
extern const size_t walk_n_events;
extern const struct place walk_places[];
extern const size_t walk_n_places;
/* Event: an hour passes. */
void ev_late(void);
/* Event: the peer sends nothing for longer than every limit. */
void ev_silence(void);

#endif
