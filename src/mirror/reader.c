/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/reader.h"

#include <string.h>

#include "base/clock.h"
#include "mirror/set.h"

#define READER_ANSWER_MS 1000

static void reader_take(struct rpmirror *m, const struct packet_age *age)
{
	m->reader = (struct reader){.fresh_ns = age->fresh_ns,
				    .epoch = age->epoch,
				    .view_seq = age->view_seq,
				    .flush_seq = age->flush_seq};
}

/* Without an answer what was known before holds, and is older. */
static void reader_ask(struct rpmirror *m)
{
	struct packet *p = &m->packet_out;

	memset(p, 0, sizeof(*p));
	p->type = PACKET_GET_AGE;
	if (!daemon_send(&m->daemon, p))
		return;
	while (daemon_wait(&m->daemon, READER_ANSWER_MS) == DAEMON_GOT_PACKET) {
		if (m->daemon.packet->type != PACKET_AGE || m->daemon.packet->id != p->id)
			continue;
		reader_take(m, &m->daemon.packet->age);
		return;
	}
}

void reader_fill(struct rpmirror *m, struct rpmirror_state *st)
{
	uint64_t now_ms;

	reader_ask(m);
	now_ms = clock_boot_ms();
	st->epoch = m->reader.epoch;
	st->view_seq = m->reader.view_seq;
	st->flush_seq = m->reader.flush_seq;
	st->age_ms = UINT64_MAX;
	if (m->reader.fresh_ns)
		st->age_ms = now_ms + 1 - m->reader.fresh_ns / NSEC_PER_MS;
}
