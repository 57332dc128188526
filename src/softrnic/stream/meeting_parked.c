/* SPDX-License-Identifier: BSD-3-Clause */
/* meeting_parked.c -- keeps inbound dials that wait without a reply. */
#include "softrnic/stream/meeting_impl.h"

void meeting_reject(struct meeting_inbound *in, enum meet_reason reason, struct meeting_todo *todo)
{
	todo->todo |= MEETING_DO_REJECT;
	todo->rejects[todo->n_rejects++] = (struct meeting_reject){in, reason};
}

/* Did the peer of this queue pair send the dial, and does the dial name this queue pair? Both GIDs
 * must be those of the move to RTR, as with RoCE: otherwise the two ends might compare different
 * names, and both would dial. */
bool meeting_is_peer(const struct meeting *m, const struct meeting_inbound *in)
{
	return meet_end_equals(&in->data.from, &m->ends.peer) &&
	       meet_end_equals(&in->data.to, &m->ends.own) && in->data.uc == m->ends.uc;
}

struct meeting_inbound *meeting_parked_peer(const struct meeting *m)
{
	for (unsigned i = 0; i < m->n_parked; i++)
		if (meeting_is_peer(m, m->parked[i]))
			return m->parked[i];
	return NULL;
}

void meeting_unpark(struct meeting *m, const struct meeting_inbound *in)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n_parked; i++)
		if (m->parked[i] != in)
			m->parked[n++] = m->parked[i];
	m->n_parked = n;
}

/* Returns the parked dial that `in` replaces: an older dial of the same sender, or the oldest dial
 * if the table is full. */
static struct meeting_inbound *meeting_replaced(const struct meeting *m,
						const struct meeting_inbound *in)
{
	for (unsigned i = 0; i < m->n_parked; i++)
		if (meet_end_equals(&m->parked[i]->data.from, &in->data.from))
			return m->parked[i];
	return m->n_parked == MEETING_PARKED_MAX ? m->parked[0] : NULL;
}

void meeting_park(struct meeting *m, struct meeting_inbound *in, struct meeting_todo *todo)
{
	struct meeting_inbound *old = meeting_replaced(m, in);

	if (old) {
		meeting_unpark(m, old);
		meeting_reject(old, MEET_BUSY, todo);
	}
	m->parked[m->n_parked++] = in;
}

void meeting_reject_parked(struct meeting *m, enum meet_reason reason, struct meeting_todo *todo)
{
	for (unsigned i = 0; i < m->n_parked; i++)
		meeting_reject(m->parked[i], reason, todo);
	m->n_parked = 0;
}
