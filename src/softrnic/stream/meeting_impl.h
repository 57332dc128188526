/* SPDX-License-Identifier: BSD-3-Clause */
/* meeting_impl.h -- declarations that only the meeting*.c files use. */
#ifndef STREAM_MEETING_IMPL_H
#define STREAM_MEETING_IMPL_H

#include "softrnic/stream/meeting.h"

static inline uint64_t meeting_after(uint64_t now, uint64_t ns)
{
	return now < CLOCK_NEVER - ns ? now + ns : CLOCK_NEVER;
}

static inline uint64_t meeting_earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Does the meeting search for its peer? */
static inline bool meeting_looks(const struct meeting *m)
{
	return m->state == MEETING_DIALING || m->state == MEETING_AWAITING;
}

/* Each event function calls meeting_begin() first and meeting_end() last. They fill in the tasks
 * and the next deadline. */
static inline void meeting_begin(struct meeting_todo *todo)
{
	*todo = (struct meeting_todo){.deadline = CLOCK_NEVER};
}

void meeting_finish(const struct meeting *m, struct meeting_todo *todo);

/* Returns the parked dial of this queue pair's peer, or NULL if the peer has none. */
struct meeting_inbound *meeting_parked_peer(const struct meeting *m);
bool meeting_is_peer(const struct meeting *m, const struct meeting_inbound *in);
void meeting_reject(struct meeting_inbound *in, enum meet_reason reason, struct meeting_todo *todo);
void meeting_reject_parked(struct meeting *m, enum meet_reason reason, struct meeting_todo *todo);
void meeting_park(struct meeting *m, struct meeting_inbound *in, struct meeting_todo *todo);
void meeting_unpark(struct meeting *m, const struct meeting_inbound *in);

void meeting_stop_retry_clock(struct meeting *m);

#endif
