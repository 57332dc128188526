/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * walk.h -- a stream with a queue pair, the events that it can get, and the states that it can
 * have.
 */
#ifndef TEST_STREAM_WALK_H
#define TEST_STREAM_WALK_H

#include "link.h"

extern struct walk {
	struct link link;
	struct side *me;
	bool aborted, connected; /* the user's actions */
} walk;

/* The way to a state from IDLE. */
struct place {
	enum stream_role role;
	enum stream_state state;
	void (*reach)(void);
};

extern void (*const walk_events[])(void);
extern const size_t walk_n_events;
extern const struct place walk_places[];
extern const size_t walk_n_places;
/* An event: an hour passes. */
void ev_late(void);
/* An event: the peer sends nothing for longer than any limit. */
void ev_silence(void);

#endif
