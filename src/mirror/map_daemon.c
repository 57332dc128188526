/* SPDX-License-Identifier: BSD-3-Clause */
/* For a process that maps a set: asks this host's daemon, and waits for a daemon. */
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "mirror/absent.h"
#include "mirror/errmsg.h"
#include "mirror/image.h"
#include "mirror/map.h"

#define MAP_AGAIN_MS 200 /* pause between attempts to reach a daemon that is absent */
/* if this many connections were closed immediately, the daemon probably has another version */
#define MAP_CLOSED 50

int map_status(const struct rpmirror *m, unsigned status, const char *text)
{
	static const int codes[PACKET_STATUS_END] = {
		[PACKET_BAD] = RPMIRROR_E_INVAL,
		[PACKET_NO_SET] = RPMIRROR_E_DAEMON,
		[PACKET_PERMISSION] = RPMIRROR_E_INVAL,
		[PACKET_BUSY] = RPMIRROR_E_BUSY,
		[PACKET_NOT_INSYNC] = RPMIRROR_E_NOTINSYNC,
		[PACKET_SPLIT] = RPMIRROR_E_SPLIT,
		[PACKET_COPY_FAILED] = RPMIRROR_E_MEDIUM,
		[PACKET_REGISTER] = RPMIRROR_E_QUORUM,
		[PACKET_IO] = RPMIRROR_E_PROVIDER,
		[PACKET_COPIES] = RPMIRROR_E_COPIES,
		[PACKET_TIMEOUT] = RPMIRROR_E_AGAIN,
		[PACKET_VERSION] = RPMIRROR_E_DAEMON,
	};

	if (status == PACKET_OK)
		return 0;
	return errmsg_fail(codes[status] ? codes[status] : RPMIRROR_E_UNKNOWN, "set %s: %s", m->set,
			   *text ? text : packet_status_2str(status));
}

int map_ask(struct rpmirror *m, unsigned flags)
{
	struct packet *p = &m->packet_out;
	int timeout = flags & RPMIRROR_MAP_WAIT ? -1 : SET_ANSWER_MS;
	uint64_t since_ms = clock_boot_ms();

	packet_begin(p, PACKET_MAP, 0);
	p->map.flags = (flags & RPMIRROR_MAP_WAIT ? PACKET_MAP_WAIT : 0) |
		       (flags & RPMIRROR_MAP_READONLY ? PACKET_MAP_READONLY : 0);
	p->map.image = image_number();
	strcpy(p->map.set, m->set);
	if (!daemon_send(&m->daemon, p))
		return errmsg_fail(RPMIRROR_E_DAEMON, "rpmirrord has closed its socket");
	switch (daemon_wait(&m->daemon, timeout)) {
	case DAEMON_GOT_PACKET:
		break;
	case DAEMON_GOT_NONE:
		return errmsg_fail(RPMIRROR_E_DAEMON, "rpmirrord does not answer within %d s",
				   SET_ANSWER_MS / 1000);
	default:
		m->daemon.is_absent = true;
		m->daemon.is_closed = clock_boot_ms() - since_ms < MAP_AGAIN_MS;
		return errmsg_fail(RPMIRROR_E_DAEMON, "rpmirrord has closed its socket, or is of "
						      "another version");
	}
	if (m->daemon.packet->type == PACKET_DONE &&
	    m->daemon.packet->done.status == PACKET_VERSION)
		return map_status(m, PACKET_VERSION, m->daemon.packet->done.text);
	if (m->daemon.packet->type != PACKET_MAPPED)
		return errmsg_fail(RPMIRROR_E_DAEMON, "rpmirrord breaks the protocol");
	return map_status(m, m->daemon.packet->mapped.status, m->daemon.packet->mapped.text);
}

int map_take_answer(struct rpmirror *m, bool readonly)
{
	const struct packet_mapped *mapped = &m->daemon.packet->mapped;
	int fd = m->daemon.files[0], rc;

	if (m->daemon.lacks_files)
		return errmsg_fail(RPMIRROR_E_PROVIDER,
				   "set %s: no descriptor is left for the files of the copy",
				   m->set);
	if (fd < 0 || (!readonly && m->daemon.files[1] < 0) || !mapped->size ||
	    mapped->slot >= MIRROR_MEMBERS_MAX)
		return errmsg_fail(RPMIRROR_E_DAEMON, "rpmirrord breaks the protocol");
	m->self = mapped->slot;
	m->uuid = mapped->uuid;
	m->size = mapped->size;
	m->daemon.files[0] = -1;
	if (readonly)
		return copy_open_readonly(&m->copy, fd, m->size);
	rc = copy_open(&m->copy, fd, m->daemon.files[2], m->size);
	fd = m->daemon.files[1];
	m->daemon.files[1] = m->daemon.files[2] = -1;
	if (!rc)
		rc = hot_open(&m->hot, fd);
	if (!rc)
		absent_note_counted(m);
	/* Until the daemon gets this packet, it withdraws the grant if the connection is lost. */
	if (!rc)
		daemon_send(&m->daemon, packet_begin(&m->packet_out, PACKET_HEARTBEAT, 0));
	return rc;
}

bool map_await_daemon(const char *set, const struct map_failure *failure, unsigned *closed)
{
	const struct timespec pause = {.tv_nsec = (long)(MAP_AGAIN_MS * NSEC_PER_MS)};

	if (!failure->is_absent)
		return false;
	if (!*closed)
		LOG_NOTICE("mirror set '%s': waits for rpmirrord: %s", set, rpmirror_errormsg());
	*closed = failure->is_closed ? *closed + 1 : 1;
	if (*closed > MAP_CLOSED)
		return false;
	nanosleep(&pause, NULL);
	return true;
}
