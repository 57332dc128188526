/* SPDX-License-Identifier: BSD-3-Clause */
/* The set's thread: sends heartbeats, handles packets of the daemon and connections, and checks
 * time limits. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "mirror/core/killpoint.h"
#include "mirror/image.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define AGENT_FDS (2 + 6 * MIRROR_MEMBERS_MAX)

#define AGENT_RESUME_MS 200 /* pause between attempts to reach a daemon that was restarted */

/* ---- packets ---- */

static void agent_on_swapped(struct rpmirror *m, const struct packet *p)
{
	static const enum primary_swap results[PACKET_SWAP_END] = {
		[PACKET_SWAP_DONE] = PRIMARY_SWAP_DONE,
		[PACKET_SWAP_CHANGED] = PRIMARY_SWAP_CHANGED,
		[PACKET_SWAP_UNKNOWN] = PRIMARY_SWAP_UNKNOWN,
		[PACKET_SWAP_FAILED] = PRIMARY_SWAP_FAILED,
	};

	if (p->id != m->swap_id)
		return;
	m->swap_id = 0;
	killpoint(KILLPOINT_w6_known);
	primary_on_swap(&m->primary, results[p->swapped.result], &p->swapped.record,
			p->swapped.revision);
}

static void agent_on_record(struct rpmirror *m, const struct packet *p)
{
	if (p->id != m->read_id)
		return;
	m->read_id = 0;
	if (p->record.status != PACKET_OK)
		return; /* the read failed; it is repeated later */
	m->read_again_ms = 0;
	primary_on_record(&m->primary, &p->record.record, p->record.revision);
}

static void agent_on_done(struct rpmirror *m, const struct packet *p)
{
	if (!m->serve_id || p->id != m->serve_id)
		return;
	m->serve_id = 0;
	if (p->done.status == PACKET_OK) {
		m->serving = true;
		set_notify(m);
	} else {
		primary_on_serve_failed(&m->primary);
	}
}

/* Returns true if the copy's file was replaced: the daemon has opened a different file under the
 * copy's name than this process has. Other processes will not find this process's flushes in that
 * file. */
static bool agent_has_other_file(const struct rpmirror *m)
{
	struct stat ours, found;
	int fd = m->daemon.files[0];

	return fd >= 0 && !fstat(fd, &found) && !fstat(m->copy.fd, &ours) &&
	       (found.st_ino != ours.st_ino || found.st_dev != ours.st_dev);
}

/* The kernel reports a failed write-back once per open file description. A daemon that starts later
 * gets no report, so this process reports the losses to the new daemon. */
static void agent_say_losses(struct rpmirror *m)
{
	int error = ESTALE;

	if (m->failed_seq || (!agent_has_other_file(m) && !copy_knows_losses(&m->copy, &error))) {
		act_say_failed(m);
		return;
	}
	if (error) {
		m->lost_error = error;
		flush_lose_joined(m, m->flush.local + 1);
		set_local_failed(m, m->flush.local + 1, -error);
		act_say_failed(m);
		return;
	}
	daemon_send(&m->daemon, packet_begin(&m->packet_out, PACKET_LOST, 0));
}

/* Handle the answer of a restarted daemon, which accepts this process as the holder either now or
 * later. */
static void agent_on_resumed(struct rpmirror *m, const struct packet *p)
{
	if (p->id != m->resume_id)
		return;
	m->resume_id = 0;
	m->is_refused = p->mapped.status != PACKET_OK;
	if (!m->is_refused)
		set_take_secret(m, &p->mapped);
	if (!m->is_refused)
		agent_say_losses(m);
	report_again(m);
	if (!m->is_refused && m->serve_again)
		act_serve(m);
	m->serve_again = m->is_refused && m->serve_again;
}

/* The daemon was replaced by a daemon that has no version in common with this library. */
static void agent_on_version(struct rpmirror *m, const struct packet *p)
{
	if (p->id != m->resume_id)
		return;
	m->resume_id = 0;
	m->is_refused = true;
	events_add(&m->events, RPMIRROR_EVENT_ERROR, m->self, 0, "%s", p->done.text);
}

static void agent_on_packet(struct rpmirror *m, const struct packet *p)
{
	switch (p->type) {
	case PACKET_SWAPPED:
		agent_on_swapped(m, p);
		break;
	case PACKET_RECORD:
		agent_on_record(m, p);
		break;
	case PACKET_MEMBER:
		ask_on_own(m, &p->member);
		break;
	case PACKET_LEASE:
		lease_on_confirmed(&m->lease, p->lease.sent_ns / NSEC_PER_MS);
		__atomic_store_n(&m->lease_until_ms, m->ended ? 0 : m->lease.valid_until,
				 __ATOMIC_RELEASE);
		break;
	case PACKET_CHANGED:
		primary_on_changed(&m->primary, &p->record.record, p->record.revision);
		break;
	case PACKET_FENCED:
		primary_on_refused(&m->primary, m->self, PRIMARY_REFUSED_EPOCH, p->fenced.known);
		break;
	case PACKET_MAPPED:
		agent_on_resumed(m, p);
		break;
	case PACKET_DONE:
		if (p->done.status == PACKET_VERSION)
			agent_on_version(m, p);
		agent_on_done(m, p);
		release_on_done(m, p);
		break;
	case PACKET_ORDER:
		order_begin(m, p);
		break;
	default: /* ignore an answer for which no code waits any more */
		break;
	}
}

/* Handle the loss of the daemon. It is unknown which of the pending requests the daemon has
 * carried out. */
static void agent_lost_daemon(struct rpmirror *m)
{
	daemon_close(&m->daemon);
	events_add(&m->events, RPMIRROR_EVENT_LOST, m->self, 0,
		   "the connection to this host's rpmirrord is lost");
	if (m->swap_id)
		primary_on_swap(&m->primary, PRIMARY_SWAP_UNKNOWN, NULL, 0);
	m->swap_id = 0;
	m->read_id = 0;
	m->serve_again |= m->serve_id != 0;
	m->serve_id = 0;
	m->members[m->self].asks |= m->members[m->self].asking;
	m->members[m->self].asking = 0;
	m->is_refused = false;
	m->release_id = 0;
	/* report the failure again, because perhaps it was not recorded */
	m->says_failed = m->failed_seq;
	m->resume_ms = clock_boot_ms() + AGENT_RESUME_MS;
}

/* Connect to the daemon again. This process can continue without the daemon, but only the daemon
 * renews the process's lease. */
static void agent_resume(struct rpmirror *m)
{
	struct packet *p = &m->packet_out;

	if (m->daemon.fd >= 0 || m->released || clock_boot_ms() < m->resume_ms)
		return;
	m->resume_ms = clock_boot_ms() + AGENT_RESUME_MS;
	if (daemon_open(&m->daemon))
		return;
	packet_begin(p, PACKET_MAP, 0);
	p->map.flags = PACKET_MAP_RESUME;
	p->map.epoch = m->epoch;
	p->map.image = image_number();
	strcpy(p->map.set, m->set);
	if (daemon_send(&m->daemon, p))
		m->resume_id = p->id;
}

static void agent_step_daemon(struct rpmirror *m)
{
	enum daemon_got got;

	if (m->daemon.fd < 0)
		return;
	if (!daemon_send_unsent(&m->daemon)) {
		agent_lost_daemon(m);
		return;
	}
	while ((got = daemon_receive(&m->daemon)) == DAEMON_GOT_PACKET) {
		agent_on_packet(m, m->daemon.packet);
		act_all(m);
		if (m->is_refused || m->released)
			break;
	}
	if (m->released)
		daemon_close(&m->daemon);
	else if (got == DAEMON_GOT_END || m->is_refused)
		agent_lost_daemon(m);
}

static void agent_heartbeat(struct rpmirror *m, uint64_t now_ms)
{
	if (now_ms < m->heartbeat_ms)
		return;
	m->heartbeat_ms = now_ms + PACKET_HEARTBEAT_MS;
	if (m->resume_id || m->release_id || m->daemon.fd < 0)
		/* the daemon does not accept this process yet, or does not accept it any more */
		return;
	daemon_send(&m->daemon, packet_begin(&m->packet_out, PACKET_HEARTBEAT, 0));
}

/* ---- time limits ---- */

/* Report as lost the members that have not acknowledged a flush within the time limit. */
static void agent_check_flushes(struct rpmirror *m, uint64_t now_ms)
{
	uint64_t oldest = m->flush.retired + 1;
	mirror_mask late;

	wait_poll(m);
	wait_settle(m);
	if (oldest > m->covered ||
	    now_ms - m->begun_ms[oldest % FLUSH_MAX] < m->primary.rec.config.replica_timeout_ms)
		return;
	late = flush_lacking(&m->flush, oldest, flush_members(&m->flush));
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (late & MIRROR_BIT(slot) && !m->flush.members[slot].owes)
			act_lost(m, slot, "it does not answer a flush");
}

/* Give up a swap without an answer: the daemon is stopped, or the register takes too long. The
 * swap may still happen. */
static void agent_check_swap(struct rpmirror *m, uint64_t now_ms)
{
	if (!m->swap_id || now_ms < m->swap_deadline_ms)
		return;
	m->swap_id = 0;
	primary_on_swap(&m->primary, PRIMARY_SWAP_UNKNOWN, NULL, 0);
}

static void agent_check_quiescence(struct rpmirror *m)
{
	bool closed = !m->direct || m->direct->is_closed;
	bool all = closed && m->flush.retired == m->flush.begun;

	if (!m->quiescing || m->quiesced || !(all || wait_check(m, m->quiescing_since_ms)))
		return;
	m->quiesced = true;
	m->quiesced_ms = clock_boot_ms();
	m->clean = all && !m->failed_seq && (!m->direct || m->direct->is_cold) && !hot_end(&m->hot);
	primary_on_quiesced(&m->primary, m->clean);
}

static void agent_step(struct rpmirror *m, uint64_t now_ms)
{
	if (files_look(m)) {
		guard_step(m, now_ms);
		return;
	}
	primary_tick(&m->primary, now_ms);
	agent_resume(m);
	agent_step_daemon(m);
	agent_heartbeat(m, now_ms);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		ask_step(m, slot, now_ms);
		act_all(m);
	}
	if (m->read_again_ms && now_ms >= m->read_again_ms)
		act_read(m);
	agent_check_flushes(m, now_ms);
	agent_check_swap(m, now_ms);
	agent_check_quiescence(m);
	act_say_failed(m);
	guard_step(m, now_ms);
	restore_step(m, now_ms);
	act_all(m);
	order_step(m, now_ms);
	compare_step(m, now_ms);
	act_all(m);
	if (!m->release_id && !m->released)
		report_step(m, now_ms);
	release_step(m);
}

/* ---- the loop ---- */

#define AGENT_LOST_MS 100 /* longest sleep of a thread that has no descriptor to wake it */

static unsigned agent_fds(const struct rpmirror *m, struct pollfd *fds)
{
	unsigned n = 0;

	fds[n++] = (struct pollfd){.fd = m->wake_fd, .events = POLLIN};
	if (m->daemon.fd >= 0)
		fds[n++] = (struct pollfd){.fd = m->daemon.fd,
					   .events = POLLIN |
						     (daemon_has_unsent(&m->daemon) ? POLLOUT : 0)};
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct link *links[] = {&m->members[slot].control, &m->members[slot].lane};

		for (unsigned i = 0; i < 2; i++) {
			int of_link[2];
			unsigned count = link_fds(links[i], of_link);

			for (unsigned j = 0; j < count; j++)
				fds[n++] = (struct pollfd){.fd = of_link[j], .events = POLLIN};
		}
	}
	return n + restore_fds(m, fds + n);
}

static int agent_timeout(struct rpmirror *m, uint64_t now_ms)
{
	uint64_t next = m->heartbeat_ms, other = primary_next_deadline(&m->primary);

	if (other < next)
		next = other;
	other = guard_deadline(m);
	if (other < next)
		next = other;
	return next > now_ms ? (int)(next - now_ms) : 0;
}

/* Sleep until there is work. The caller holds the lock, which is released during the sleep. */
static void agent_sleep(struct rpmirror *m)
{
	struct pollfd fds[AGENT_FDS];
	int timeout = AGENT_LOST_MS;
	unsigned n = 0;

	if (!m->has_lost_files) {
		timeout = agent_timeout(m, clock_boot_ms());
		act_all(m);
		n = agent_fds(m, fds);
	}
	pthread_mutex_unlock(&m->lock);
	poll(fds, n, timeout);
	ownfd_clear(m->wake_fd);
	set_lock_in_turn(m);
}

void *agent_main(void *arg)
{
	struct rpmirror *m = arg;

	pthread_mutex_lock(&m->lock);
	while (!m->stopping) {
		agent_step(m, clock_boot_ms());
		agent_sleep(m);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}
