/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror_map(): becomes the primary, or maps the copy as it is. */
#include "mirror/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/rand.h"
#include "base/thread.h"
#include "mirror/errmsg.h"
#include "mirror/repair.h"
#include "mirror/restore.h"
#include "mirror/set.h"

#define MAP_TRIES 10 /* attempts without a pause if another host is faster each time */

/* Numbers of descriptors that the set itself needs, and that each member needs: three connections,
 * and one more for a resync. */
#define MAP_FILES_OWN  16u
#define MAP_FILES_EACH 20u

static uint64_t map_random(void *arg)
{
	uint64_t value;

	(void)arg;
	rand_bytes(&value, sizeof(value));
	return value;
}

/* ---- the device ---- */

/* Returns the address at which the other members are reached; without another member, the address
 * of this host. */
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
	if (!rc) /* the queue must hold all completions if all operations fail together */
		rc = rpma_cq_new(m->peer, MIRROR_MEMBERS_MAX * (SET_QUEUE + LINK_SENDS), &m->cq);
	if (rc)
		return errmsg_fail(RPMIRROR_E_PROVIDER, "no device reaches member address %s: %s",
				   addr, rpma_err_last());
	return staging_init(&m->staging, m->peer, SET_STAGING);
}

static void map_set_places(struct rpmirror *m)
{
	const struct mirror_config *config = &m->primary.rec.config;
	int timeout = (int)config->replica_timeout_ms;

	m->control_place = (struct link_place){.peer = m->peer,
					       .sq_size = LINK_SENDS,
					       .timeout_ms = timeout,
					       .key = &m->secret,
					       .self = "this librpmirror"};
	m->lane_place = (struct link_place){.peer = m->peer,
					    .cq = m->cq,
					    .sq_size = SET_QUEUE,
					    .timeout_ms = timeout,
					    .key = &m->secret,
					    .self = "this librpmirror"};
	set_take_secret(m, &m->daemon.packet->mapped);
}

static struct rpmirror *map_new(const char *set)
{
	struct rpmirror *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	strcpy(m->set, set);
	m->copy.fd = m->copy.own.fd = m->copy.sentinel = -1;
	m->own_meta.fd = -1;
	m->hot.file.fd = -1;
	m->wake_fd = -1;
	m->events.fd = -1;
	pthread_mutex_init(&m->lock, NULL);
	pthread_mutex_init(&m->turn, NULL);
	thread_cond_init(&m->cond);
	write_back_init(&m->write_back);
	return m;
}

/* ---- becoming the primary ---- */

static int map_start(struct rpmirror *m)
{
	const struct packet_mapped *mapped = &m->daemon.packet->mapped;
	uint64_t now = clock_boot_ms();
	int rc = events_init(&m->events);

	m->wake_fd = ownfd_event(EFD_NONBLOCK);
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
	files_note(m);
	rc = thread_start(&m->thread, 0, agent_main, m);
	if (rc)
		return errmsg_fail(RPMIRROR_E_NOMEM, "cannot start a thread: %s", strerror(-rc));
	m->has_thread = true;
	return 0;
}

/* Wait for the lease, so that the first reads can be confirmed. If no register answers, the mapping
 * is made without a lease. */
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

/* Protect the mapping by the lease from now on. */
static int map_open_memory(struct rpmirror *m, unsigned flags)
{
	int rc = 0;

	pthread_mutex_lock(&m->lock);
	if (m->copy.is_direct)
		rc = direct_open(m);
	else if (mprotect(m->app, m->size, PROT_READ | PROT_WRITE))
		rc = errmsg_fail(RPMIRROR_E_PROVIDER, "cannot map set %s: %s", m->set,
				 strerror(errno));
	m->guard = guard_choose(m, flags);
	m->mapped = !rc;
	pthread_mutex_unlock(&m->lock);
	return rc;
}

/* Returns true if this many descriptors can still be opened. But other threads may open them
 * first. */
static bool map_has_files(const struct rpmirror *m, unsigned count)
{
	int fds[MAP_FILES_OWN + MAP_FILES_EACH * MIRROR_MEMBERS_MAX];
	unsigned n = 0;

	while (n < count && (fds[n] = fcntl(m->copy.fd, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	for (unsigned i = 0; i < n; i++)
		close(fds[i]);
	return n == count;
}

/* Check that enough descriptors are available. If a connection lacked a descriptor, the member
 * would seem to be away, and would be excluded. */
static int map_check_files(const struct rpmirror *m)
{
	const struct mirror_config *config = &m->daemon.packet->mapped.record.config;
	unsigned others = (unsigned)__builtin_popcount(mirror_config_members(config)) - 1;
	unsigned count = MAP_FILES_OWN + MAP_FILES_EACH * others;

	if (map_has_files(m, count))
		return 0;
	return errmsg_fail(RPMIRROR_E_PROVIDER,
			   "set %s: %s: the connections to %u other members need up to %u more",
			   m->set, strerror(EMFILE), others, count);
}

static int map_primary(struct rpmirror *m, void *hint, unsigned flags)
{
	int rc = map_check_files(m);

	m->copy.is_direct = flags & RPMIRROR_MAP_DIRECT;
	if (!rc)
		rc = map_memory(m, hint, PROT_NONE); /* reserve the address */
	if (!rc)
		rc = map_open_device(m);
	if (!rc)
		rc = map_start(m);
	if (!rc)
		rc = map_await(m, flags);
	return rc ? rc : map_open_memory(m, flags);
}

static int map_check_flags(const char *set, unsigned flags)
{
	const unsigned known = RPMIRROR_MAP_WAIT | RPMIRROR_MAP_READONLY | RPMIRROR_MAP_STALE_OK |
			       RPMIRROR_MAP_ISOLATED | RPMIRROR_MAP_DIRECT | GUARD_FLAGS;
	bool readonly = flags & RPMIRROR_MAP_READONLY, stale = flags & RPMIRROR_MAP_STALE_OK;

	if (!*set || strlen(set) > MIRROR_SET_MAX)
		return errmsg_fail(RPMIRROR_E_INVAL, "'%s' cannot be the name of a set", set);
	if (flags & ~known || readonly != stale || __builtin_popcount(flags & GUARD_FLAGS) > 1 ||
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
	m->granted = !rc && !(flags & RPMIRROR_MAP_READONLY);
	if (!rc)
		rc = map_take_answer(m, flags & RPMIRROR_MAP_READONLY);
	if (!rc && flags & RPMIRROR_MAP_READONLY)
		rc = map_memory(m, hint, PROT_READ);
	else if (!rc)
		rc = map_primary(m, hint, flags);
	return rc;
}

/* Returns true if no descriptor is available. The call that failed may already have closed its
 * descriptors. */
static bool map_lacks_descriptors(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE;
	close(fd);
	return strstr(rpmirror_errormsg(), strerror(EMFILE));
}

/* Many calls fail for lack of a descriptor, so add the explanation for all of them here. */
static void map_explain(int rc)
{
	struct rlimit limit;

	if (!map_lacks_descriptors() || getrlimit(RLIMIT_NOFILE, &limit))
		return;
	errmsg_fail(rc,
		    "%s; RLIMIT_NOFILE lets this process have %llu files open, which is too few: "
		    "raise it (ulimit -n)",
		    rpmirror_errormsg(), (unsigned long long)limit.rlim_cur);
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
		map_explain(rc);
		direct_close(m);
		map_stop_thread(m);
		*failure = (struct map_failure){.is_overtaken = m->ended == RPMIRROR_E_BUSY,
						.is_absent = m->daemon.is_absent,
						.is_closed = m->daemon.is_closed};
		if (m->granted)
			release_wait(m, false);
		map_delete(m);
		return rc;
	}
	*out = m;
	return 0;
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
