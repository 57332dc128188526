/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_map() and rpmirror_unmap(). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/poll.h"
#include "base/rand.h"
#include "base/thread.h"
#include "mirror/absent.h"
#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define MAP_TRIES    10  /* without waiting, if others are faster */
#define MAP_AGAIN_MS 200 /* between attempts to reach a daemon that is not there */
#define MAP_CLOSED   50  /* attempts that it ends at once: it is of another version */

/* Why an attempt to map has failed, if another one may succeed. */
struct map_failure {
	/* The register changed behind the daemon's permission, such as by the end of the former
	 * primary, or by another host that was faster. */
	bool is_overtaken;
	bool is_absent; /* there was no daemon, or it has ended; */
	bool is_closed; /* at once, after the question */
};

static uint64_t map_random(void *arg)
{
	uint64_t value;

	(void)arg;
	rand_bytes(&value, sizeof(value));
	return value;
}

/* ---- this host's daemon ---- */

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
	};

	if (status == PACKET_OK)
		return 0;
	return errmsg_fail(codes[status] ? codes[status] : RPMIRROR_E_UNKNOWN, "set %s: %s", m->set,
			   *text ? text : packet_status_2str(status));
}

static int map_ask(struct rpmirror *m, unsigned flags)
{
	struct packet *p = &m->packet_out;
	int timeout = flags & RPMIRROR_MAP_WAIT ? -1 : SET_ANSWER_MS;
	uint64_t since_ms = clock_boot_ms();

	memset(p, 0, sizeof(*p));
	p->type = PACKET_MAP;
	p->map.flags = (flags & RPMIRROR_MAP_WAIT ? PACKET_MAP_WAIT : 0) |
		       (flags & RPMIRROR_MAP_READONLY ? PACKET_MAP_READONLY : 0);
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
	if (m->daemon.packet->type != PACKET_MAPPED)
		return errmsg_fail(RPMIRROR_E_DAEMON, "rpmirrord breaks the protocol");
	return map_status(m, m->daemon.packet->mapped.status, m->daemon.packet->mapped.text);
}

static int map_take_answer(struct rpmirror *m, bool readonly)
{
	const struct packet_mapped *mapped = &m->daemon.packet->mapped;
	int fd = m->daemon.files[0], rc;

	if (fd < 0 || (!readonly && m->daemon.files[1] < 0) || !mapped->size ||
	    mapped->slot >= MIRROR_MEMBERS_MAX)
		return errmsg_fail(RPMIRROR_E_DAEMON, "rpmirrord breaks the protocol");
	m->self = mapped->slot;
	m->uuid = mapped->uuid;
	m->size = mapped->size;
	m->has_secret = mapped->has_secret;
	memcpy(m->key, mapped->key, sizeof(m->key));
	m->daemon.files[0] = -1;
	if (readonly)
		return copy_open_readonly(&m->copy, fd, m->size);
	rc = copy_open(&m->copy, fd, m->size);
	fd = m->daemon.files[1];
	m->daemon.files[1] = -1;
	if (!rc)
		rc = hot_open(&m->hot, fd);
	if (!rc)
		absent_open(m);
	return rc;
}

/* ---- the device ---- */

/* The address by which the other members are reached; without any, this host's. */
static const char *map_address(const struct rpmirror *m)
{
	const struct mirror_config *config = &m->daemon.packet->mapped.record.config;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (config->members[slot].id && slot != m->self)
			return config->members[slot].host;
	return config->members[m->self].host;
}

static int map_open_device(struct rpmirror *m)
{
	const char *addr = map_address(m);
	struct ibv_context *ctx;
	int rc = rpma_utils_get_ibv_context(addr, RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx);

	if (!rc)
		rc = rpma_peer_new(ctx, &m->peer);
	if (!rc) /* a queue of failed operations, too, must not overflow */
		rc = rpma_cq_new(m->peer, MIRROR_MEMBERS_MAX * (SET_QUEUE + LINK_SENDS), &m->cq);
	if (rc)
		return errmsg_fail(RPMIRROR_E_PROVIDER, "no device reaches member address %s: %s",
				   addr, rpma_err_last());
	return staging_init(&m->staging, m->peer, SET_STAGING);
}

static void map_set_places(struct rpmirror *m)
{
	const struct mirror_config *config = &m->primary.rec.config;
	const uint8_t *key = m->has_secret ? m->key : NULL;
	int timeout = (int)config->replica_timeout_ms;

	m->control_place = (struct link_place){
		.peer = m->peer, .sq_size = LINK_SENDS, .timeout_ms = timeout, .key = key};
	m->lane_place = (struct link_place){.peer = m->peer,
					    .cq = m->cq,
					    .sq_size = SET_QUEUE,
					    .timeout_ms = timeout,
					    .key = key};
}

/* ---- making and releasing ---- */

static struct rpmirror *map_new(const char *set)
{
	struct rpmirror *m = calloc(1, sizeof(*m));
	pthread_condattr_t attr;

	if (!m)
		return NULL;
	strcpy(m->set, set);
	m->copy.fd = -1;
	m->hot.file.fd = -1;
	m->wake_fd = -1;
	m->events.fd = -1;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->turn, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->cond, &attr);
	pthread_condattr_destroy(&attr);
	return m;
}

static void map_stop_thread(struct rpmirror *m)
{
	if (!m->has_thread)
		return;
	pthread_mutex_lock(&m->lock);
	m->stopping = true;
	set_wake(m);
	pthread_mutex_unlock(&m->lock);
	pthread_join(m->thread, NULL);
	m->has_thread = false;
}

static void map_delete(struct rpmirror *m)
{
	map_stop_thread(m);
	repair_close(m);
	restore_close(m);
	direct_delete(m);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		ask_drop(m, slot);
	if (m->app)
		munmap(m->app, m->size);
	staging_fini(&m->staging);
	rpma_cq_delete(&m->cq);
	rpma_peer_delete(&m->peer);
	copy_close(&m->copy);
	hot_close(&m->hot);
	ranges_union_clear(&m->records);
	daemon_close(&m->daemon);
	events_fini(&m->events);
	if (m->wake_fd >= 0)
		close(m->wake_fd);
	pthread_cond_destroy(&m->cond);
	pthread_mutex_destroy(&m->turn);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* ---- becoming primary ---- */

static int map_start(struct rpmirror *m)
{
	const struct packet_mapped *mapped = &m->daemon.packet->mapped;
	uint64_t now = clock_boot_ms();
	int rc = events_init(&m->events);

	m->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!rc && m->wake_fd < 0)
		rc = errmsg_fail(RPMIRROR_E_PROVIDER, "cannot make an eventfd: %s",
				 strerror(errno));
	if (rc)
		return rc;
	flush_init(&m->flush);
	lease_init(&m->lease, mapped->record.config.lease_ms);
	primary_start(&m->primary, &mapped->record, mapped->revision, m->self, NULL,
		      mapped->is_forced, now, map_random, NULL);
	if (mapped->is_silent)
		primary_suspect(&m->primary, mapped->record.view.primary);
	map_set_places(m);
	rc = repair_open(m);
	if (!rc)
		rc = restore_open(m);
	if (rc)
		return rc;
	rc = thread_start(&m->thread, 0, agent_main, m);
	if (rc)
		return errmsg_fail(RPMIRROR_E_NOMEM, "cannot start a thread: %s", strerror(-rc));
	m->has_thread = true;
	return 0;
}

/* What is read at once is to be confirmed. Without a register the mapping is there all the same. */
static void map_await_lease(struct rpmirror *m)
{
	uint64_t deadline = clock_now_ns() + m->primary.rec.config.lease_ms * NSEC_PER_MS;
	bool in_time = true;

	while (in_time && !m->ended && !__atomic_load_n(&m->lease_until_ms, __ATOMIC_ACQUIRE))
		in_time = wait_step(m, deadline);
}

static int map_await(struct rpmirror *m, unsigned flags)
{
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	while (!rc && !m->serving) {
		if (m->ended > 0)
			rc = errmsg_fail(set_end_code(m),
					 "set %s: an operator has demoted this host before the set "
					 "was mapped: map it again to become the primary",
					 m->set);
		else if (m->ended)
			rc = errmsg_fail(m->ended, "%s", m->ended_why);
		else if (m->blocked && !(flags & RPMIRROR_MAP_WAIT))
			rc = wait_fail_blocked(m);
		else
			wait_step(m, CLOCK_NEVER);
	}
	if (!rc)
		map_await_lease(m);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static int map_memory(struct rpmirror *m, void *hint, int protection)
{
	int flags = protection == PROT_READ ? MAP_SHARED : MAP_PRIVATE | MAP_NORESERVE;
	void *p;

	if (!hint)
		hint = (void *)(uintptr_t)m->daemon.packet->mapped.record.config.address;
	if (m->copy.is_direct)
		p = direct_map(m, hint, hint ? MAP_FIXED_NOREPLACE : 0);
	else
		p = mmap(hint, m->size, protection, flags | (hint ? MAP_FIXED_NOREPLACE : 0),
			 m->copy.fd, 0);
	if (p == MAP_FAILED || (hint && p != hint)) {
		if (p != MAP_FAILED)
			munmap(p, m->size);
		return errmsg_fail(RPMIRROR_E_PROVIDER, "set %s: cannot map %llu bytes at %p: %s",
				   m->set, (unsigned long long)m->size, hint,
				   hint ? "the address is not free" : strerror(errno));
	}
	m->app = p;
	return 0;
}

/* From now on the lease guards it. */
static int map_open_memory(struct rpmirror *m)
{
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	if (m->copy.is_direct)
		rc = direct_open(m);
	else if (mprotect(m->app, m->size, PROT_READ | PROT_WRITE))
		rc = errmsg_fail(RPMIRROR_E_PROVIDER, "cannot map set %s: %s", m->set,
				 strerror(errno));
	m->guard = guard_choose(m);
	m->mapped = !rc;
	pthread_mutex_unlock(&m->lock);
	return rc;
}

static int map_primary(struct rpmirror *m, void *hint, unsigned flags)
{
	int rc;

	m->copy.is_direct = flags & RPMIRROR_MAP_DIRECT;
	rc = map_memory(m, hint, PROT_NONE); /* the address is kept */
	if (!rc)
		rc = map_open_device(m);
	if (!rc)
		rc = map_start(m);
	if (!rc)
		rc = map_await(m, flags);
	return rc ? rc : map_open_memory(m);
}

static int map_check_flags(const char *set, unsigned flags)
{
	const unsigned known = RPMIRROR_MAP_WAIT | RPMIRROR_MAP_READONLY | RPMIRROR_MAP_STALE_OK |
			       RPMIRROR_MAP_ISOLATED | RPMIRROR_MAP_DIRECT;
	bool readonly = flags & RPMIRROR_MAP_READONLY, stale = flags & RPMIRROR_MAP_STALE_OK;

	if (!*set || strlen(set) > MIRROR_SET_MAX)
		return errmsg_fail(RPMIRROR_E_INVAL, "'%s' cannot be the name of a set", set);
	if (flags & ~known || readonly != stale ||
	    (flags & RPMIRROR_MAP_DIRECT &&
	     flags & (RPMIRROR_MAP_ISOLATED | RPMIRROR_MAP_READONLY)))
		return errmsg_fail(RPMIRROR_E_INVAL,
				   "flags %#x: unknown, or not possible together; READONLY and "
				   "STALE_OK need each other",
				   flags);
	return 0;
}

static int map_open(struct rpmirror *m, void *hint, unsigned flags)
{
	int rc = set_watch_forks(&m->forks);

	if (!rc)
		rc = daemon_open(&m->daemon);
	if (!rc)
		rc = map_ask(m, flags);
	if (!rc)
		rc = map_take_answer(m, flags & RPMIRROR_MAP_READONLY);
	if (!rc && flags & RPMIRROR_MAP_READONLY)
		rc = map_memory(m, hint, PROT_READ);
	else if (!rc)
		rc = map_primary(m, hint, flags);
	return rc;
}

static int map_try(const char *set, void *hint, unsigned flags, struct rpmirror **out,
		   struct map_failure *failure)
{
	struct rpmirror *m = map_new(set);
	int rc;

	*failure = (struct map_failure){0};
	if (!m)
		return errmsg_fail(RPMIRROR_E_NOMEM, "out of memory");
	rc = map_open(m, hint, flags);
	if (rc) {
		direct_close(m);
		map_stop_thread(m);
		*failure = (struct map_failure){.is_overtaken = m->ended == RPMIRROR_E_BUSY,
						.is_absent = m->daemon.is_absent,
						.is_closed = m->daemon.is_closed};
		if (m->hot.file.fd >= 0)
			release_wait(m, false);
		map_delete(m);
		return rc;
	}
	*out = m;
	return 0;
}

/* With WAIT, for a daemon that is restarted, or not started yet. */
static bool map_await_daemon(const char *set, const struct map_failure *failure, unsigned *closed)
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

static bool map_again(const char *set, int rc, unsigned flags, const struct map_failure *failure,
		      unsigned *closed, unsigned tries)
{
	if (rc == RPMIRROR_E_BUSY)
		return flags & RPMIRROR_MAP_WAIT || (failure->is_overtaken && tries < MAP_TRIES);
	return rc == RPMIRROR_E_DAEMON && flags & RPMIRROR_MAP_WAIT &&
	       map_await_daemon(set, failure, closed);
}

int rpmirror_map(const char *set, void *hint, unsigned flags, struct rpmirror **m_ptr,
		 void **addr_ptr, size_t *len_ptr)
{
	struct rpmirror *m = NULL;
	struct map_failure failure;
	unsigned tries = 0, closed = 0;
	int rc;

	if (!set || !m_ptr || !addr_ptr || !len_ptr)
		return errmsg_fail(RPMIRROR_E_INVAL, "rpmirror_map: an argument is NULL");
	rc = map_check_flags(set, flags);
	if (rc)
		return rc;
	do
		rc = map_try(set, hint, flags, &m, &failure);
	while (rc && map_again(set, rc, flags, &failure, &closed, ++tries));
	if (rc)
		return rc;
	*addr_ptr = m->app;
	*len_ptr = m->size;
	*m_ptr = m;
	return 0;
}

/* ---- the end ---- */

/* The register has as long as a flush that waits for it, once the flushes have ended. */
static bool map_is_late(const struct rpmirror *m)
{
	uint64_t limit = m->primary.rec.config.blocked_ms;

	return m->quiesced && limit != UINT32_MAX && clock_boot_ms() - m->quiesced_ms >= limit;
}

static int map_demote(struct rpmirror *m)
{
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	primary_demote(&m->primary);
	act_all(m);
	set_wake(m);
	while (!m->ended && !map_is_late(m))
		wait_step(m, CLOCK_NEVER);
	if (m->ended < 0)
		rc = errmsg_fail(m->ended, "%s", m->ended_why);
	else if (!m->ended)
		rc = errmsg_fail(RPMIRROR_E_QUORUM,
				 "set %s: the register does not answer, so that the end of this "
				 "primary is not recorded there: the next one has to wait for the "
				 "end of its lease, and makes the copies equal",
				 m->set);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

int rpmirror_unmap(struct rpmirror **m_ptr)
{
	struct rpmirror *m;
	int rc = 0, released = 0;

	if (!m_ptr)
		return errmsg_fail(RPMIRROR_E_INVAL, "rpmirror_unmap: the argument is NULL");
	m = *m_ptr;
	if (!m)
		return 0;
	if (!set_is_usable(m))
		return errmsg_fail(RPMIRROR_E_INVAL, "a parent process mapped the set");
	*m_ptr = NULL;
	if (m->has_thread) {
		rc = map_demote(m);
		direct_close(m);
		map_stop_thread(m);
		released = release_wait(m, !rc && m->clean);
	}
	map_delete(m);
	return rc ? rc : released;
}
