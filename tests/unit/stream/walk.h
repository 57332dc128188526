/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.h -- a stream with a queue pair, the events that can befall it, and where it can be. */
#ifndef TEST_STREAM_WALK_H
#define TEST_STREAM_WALK_H

#include "link.h"

extern struct walk {
	struct link link;
	struct side *me;
	bool aborted, connected; /* what the user did */
} walk;

/* How to get there from IDLE. */
struct place {
	enum stream_role role;
	enum stream_state state;
	void (*reach)(void);
};

extern void (*const walk_events[])(void);
extern const size_t walk_n_events;
extern const struct place walk_places[];
extern const size_t walk_n_places;
/* An hour passes: one of the events. */
void ev_late(void);
/* The peer says nothing for longer than any limit: another. */
void ev_silence(void);

#endif
