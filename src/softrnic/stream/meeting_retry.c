/* SPDX-License-Identifier: BSD-3-Clause */
/* meeting_retry.c -- the retry clock. It limits how long posted work waits until the queue pair is
 * connected to its peer. While both are connected no clock runs, because TCP and the heartbeat
 * watch the connection. */
#include "softrnic/stream/meeting_impl.h"

#define TIMEOUT_UNIT_NS 4096u /* InfiniBand's 4.096 us */

uint64_t meeting_retry_ns(uint8_t timeout, uint8_t retry_cnt)
{
	/* In verbs the timeout has 5 bits and the retry count 3 bits. */
	return timeout ? ((uint64_t)TIMEOUT_UNIT_NS << (timeout & 31)) * (retry_cnt % 8u + 1)
		       : CLOCK_NEVER;
}

void meeting_stop_retry_clock(struct meeting *m)
{
	m->posted = false;
	m->retry_at = CLOCK_NEVER;
}

/* The limit is the user's limit, but at least retry_floor_ns. For a peer that was connected and is
 * lost, it is exactly the user's limit. */
static void meeting_start_retry_clock(struct meeting *m, uint64_t now)
{
	uint64_t least = m->state == MEETING_LOST ? 0 : m->retry_floor_ns;

	m->retry_at = meeting_after(now, m->retry_ns > least ? m->retry_ns : least);
}

void meeting_on_retry_limits(struct meeting *m, uint64_t retry_ns, uint64_t floor_ns, uint64_t now,
			     struct meeting_todo *todo)
{
	meeting_begin(todo);
	m->retry_ns = retry_ns;
	m->retry_floor_ns = floor_ns;
	if (m->posted)
		meeting_start_retry_clock(m, now);
	meeting_finish(m, todo);
}

void meeting_on_post(struct meeting *m, uint64_t now, struct meeting_todo *todo)
{
	meeting_begin(todo);
	if (m->state != MEETING_NONE && m->state != MEETING_MET && !m->posted) {
		m->posted = true;
		meeting_start_retry_clock(m, now);
		/* The next dial may be up to MEETING_SELDOM_NS away, because nothing was posted.
		 * Now dial soon. */
		if (meeting_looks(m) && m->dial == MEETING_DIAL_NONE)
			m->dial_at = meeting_earlier(m->dial_at,
						     meeting_after(now, MEETING_RETRY_MAX_NS));
	}
	meeting_finish(m, todo);
}
