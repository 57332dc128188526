/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/reader.h"

#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/poll.h"
#include "mirror/set.h"

#define READER_ANSWER_MS 1000

static bool reader_send(struct rpmirror *m, enum packet_type type)
{
	struct packet *p = packet_begin(&m->packet_out, type, 0);

	strcpy(p->map.set, type == PACKET_MAP ? m->set : "");
	if (type == PACKET_MAP)
		p->map.flags = PACKET_MAP_READONLY;
	if (daemon_send_unsent(&m->daemon) && daemon_has_unsent(&m->daemon))
		return false; /* one question that a stopped daemon has not read is enough */
	if (!daemon_has_unsent(&m->daemon) && daemon_send(&m->daemon, p))
		return true;
	daemon_close(&m->daemon);
	return false;
}

/* Wait for the answer to the question. Returns false if no answer came in time, or the daemon has
 * exited. */
static bool reader_await(struct rpmirror *m, enum packet_type type)
{
	uint64_t deadline = poll_deadline(READER_ANSWER_MS);
	enum daemon_got got;

	while ((got = daemon_wait(&m->daemon, poll_ms_left(deadline))) == DAEMON_GOT_PACKET)
		if (m->daemon.packet->type == type && m->daemon.packet->id == m->packet_out.id)
			return true;
	if (got == DAEMON_GOT_END)
		daemon_close(&m->daemon);
	return false;
}

/* Returns true if the daemon's answer is about the mapped file, and not about a file that replaced
 * it. */
static bool reader_is_same(const struct rpmirror *m)
{
	struct stat mapped, now;

	return m->daemon.packet->mapped.status == PACKET_OK && m->daemon.files[0] >= 0 &&
	       !fstat(m->copy.fd, &mapped) && !fstat(m->daemon.files[0], &now) &&
	       mapped.st_dev == now.st_dev && mapped.st_ino == now.st_ino;
}

/* Connect to the daemon again, after it was restarted. */
static bool reader_connect(struct rpmirror *m)
{
	daemon_close(&m->daemon);
	if (daemon_open(&m->daemon))
		return false;
	if (reader_send(m, PACKET_MAP) && reader_await(m, PACKET_MAPPED) && reader_is_same(m))
		return true;
	daemon_close(&m->daemon);
	return false;
}

static bool reader_ask(struct rpmirror *m)
{
	const struct packet_age *age;

	if (m->daemon.fd < 0 || !reader_send(m, PACKET_GET_AGE) || !reader_await(m, PACKET_AGE))
		return false;
	age = &m->daemon.packet->age;
	m->reader = (struct reader){.fresh_ns = age->fresh_ns,
				    .epoch = age->epoch,
				    .view_seq = age->view_seq,
				    .flush_seq = age->flush_seq};
	return true;
}

/* If no answer comes, the former state holds, with a greater age. */
void reader_fill(struct rpmirror *m, struct rpmirror_state *st)
{
	bool is_asked = reader_ask(m);
	uint64_t now_ms;

	if (!is_asked && m->daemon.fd < 0 && reader_connect(m))
		is_asked = reader_ask(m);
	now_ms = clock_boot_ms();
	st->epoch = m->reader.epoch;
	st->view_seq = m->reader.view_seq;
	st->flush_seq = m->reader.flush_seq;
	st->age_ms = UINT64_MAX;
	if (m->reader.fresh_ns)
		st->age_ms = now_ms + 1 - m->reader.fresh_ns / NSEC_PER_MS;
	st->health =
		is_asked && m->reader.fresh_ns ? RPMIRROR_HEALTH_FULL : RPMIRROR_HEALTH_BLOCKED;
}
