/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections to each member that has all flushes, only for reading bytes that this host's copy
 * has lost. The background thread makes and closes them; the restore thread reads, without
 * allocating memory.
 */
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "mirror/restore_impl.h"

#define RESTORE_RETRY_MS 500
/* duration of polling; after this time the thread sleeps between polls */
#define RESTORE_BUSY_NS (2 * NSEC_PER_MS)
#define RESTORE_NAP_NS  (100 * NSEC_PER_US)

/* ---- the background thread ---- */

static void restore_connect(struct rpmirror *m, unsigned slot, uint64_t now_ms)
{
	const struct mirror_member *to = &m->primary.rec.config.members[slot];
	struct restore_lane *lane = &m->restore->lanes[slot];
	struct greeting greeting = {.uuid = m->uuid,
				    .epoch = m->epoch,
				    .copy_id = to->id,
				    .from = m->self,
				    .to = (uint8_t)slot,
				    .kind = GREETING_RESTORE};

	lane->retry_ms = now_ms + RESTORE_RETRY_MS;
	atomic_store(&lane->has_failed, false);
	link_open(&lane->link, &m->restore->place, to->host, to->port, &greeting, now_ms);
}

/* Disconnect, unless the connection is being read from; then a later pass disconnects. */
static void restore_disconnect(struct restore_lane *lane)
{
	unsigned idle = RESTORE_IDLE;

	if (atomic_load(&lane->use) == RESTORE_NO_LANE ||
	    atomic_compare_exchange_strong(&lane->use, &idle, RESTORE_NO_LANE))
		link_close(&lane->link);
}

static void restore_step_lane(struct rpmirror *m, unsigned slot, bool is_wanted, uint64_t now_ms)
{
	struct restore_lane *lane = &m->restore->lanes[slot];
	enum link_state before = lane->link.state;

	if (before == LINK_DOWN) {
		if (is_wanted && now_ms >= lane->retry_ms)
			restore_connect(m, slot, now_ms);
		return;
	}
	link_step(&lane->link, now_ms);
	if (!is_wanted || lane->link.state == LINK_ENDED || atomic_load(&lane->has_failed))
		restore_disconnect(lane);
	else if (before != LINK_READY && lane->link.state == LINK_READY)
		atomic_store(&lane->use, RESTORE_IDLE);
}

static bool restore_make_buffers(struct restore *r)
{
	const size_t size = (size_t)MIRROR_MEMBERS_MAX * RESTORE_PIECE;

	if (r->mr)
		return true;
	if (!r->buffers)
		r->buffers = mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (r->buffers == MAP_FAILED)
		r->buffers = NULL;
	return r->buffers &&
	       !rpma_mr_reg(r->m->peer, r->buffers, size, RPMA_MR_USAGE_READ_DST, &r->mr);
}

void restore_step(struct rpmirror *m, uint64_t now_ms)
{
	unsigned wanted = atomic_load(&m->restore->sources);

	restore_collect(m);
	if (wanted && !restore_make_buffers(m->restore))
		return;
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		restore_step_lane(m, slot, wanted & MIRROR_BIT(slot), now_ms);
}

unsigned restore_fds(const struct rpmirror *m, struct pollfd *fds)
{
	unsigned n = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		int of_link[2];
		unsigned count = link_fds(&m->restore->lanes[slot].link, of_link);

		for (unsigned i = 0; i < count; i++)
			fds[n++] = (struct pollfd){.fd = of_link[i], .events = POLLIN};
	}
	return n;
}

/* Publish the members of S whose lanes get all flushes. */
void restore_publish(struct rpmirror *m)
{
	mirror_mask sources = 0;

	for (unsigned slot = 0; m->serving && !m->ended && slot < MIRROR_MEMBERS_MAX; slot++)
		if (m->primary.rec.view.insync & MIRROR_BIT(slot) && slot != m->self &&
		    m->flush.members[slot].from && !m->flush.members[slot].owes &&
		    !m->members[slot].lane_failed)
			sources |= MIRROR_BIT(slot);
	if (atomic_exchange(&m->restore->sources, sources) != sources)
		set_wake(m);
}

/* ---- the restore thread ---- */

static void restore_pause(uint64_t since)
{
	const struct timespec nap = {.tv_nsec = RESTORE_NAP_NS};

	if (clock_now_ns() - since < RESTORE_BUSY_NS)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

/* Wait for a completion by polling only. A completion of an earlier read is skipped. */
static bool restore_poll(struct restore *r, struct rpma_conn *conn)
{
	uint64_t since = clock_now_ns();
	struct rpma_cq *cq;
	struct ibv_wc wc;

	if (rpma_conn_get_cq(conn, &cq))
		return false;
	while (clock_now_ns() - since < r->patience_ns) {
		int rc = rpma_cq_get_wc(cq, 1, &wc, NULL);

		if (!rc && wc.wr_id == r->reads)
			return wc.status == IBV_WC_SUCCESS;
		if (rc && rc != RPMA_E_NO_COMPLETION)
			return false;
		if (rc)
			restore_pause(since);
	}
	return false;
}

static bool restore_read_lane(struct restore *r, unsigned slot, uint64_t offset, uint32_t len)
{
	struct restore_lane *lane = &r->lanes[slot];
	unsigned idle = RESTORE_IDLE;
	bool is_read;

	if (!atomic_compare_exchange_strong(&lane->use, &idle, RESTORE_READING))
		return false;
	r->reads++;
	is_read = !atomic_load(&lane->has_failed) &&
		  !rpma_read(lane->link.conn, r->mr, (size_t)slot * RESTORE_PIECE, lane->link.data,
			     offset, len, RPMA_F_COMPLETION_ALWAYS,
			     (const void *)(uintptr_t)r->reads) &&
		  restore_poll(r, lane->link.conn);
	if (!is_read)
		atomic_store(&lane->has_failed, true);
	atomic_store(&lane->use, RESTORE_IDLE);
	if (!is_read)
		set_wake(r->m);
	return is_read;
}

/* Ask each member once, except those without a connection. */
static bool restore_read_one(struct restore *r, uint64_t offset, uint32_t len, unsigned *slot)
{
	for (unsigned i = 0; i < MIRROR_MEMBERS_MAX; i++) {
		unsigned at = (*slot + i) % MIRROR_MEMBERS_MAX;

		if (!(atomic_load(&r->sources) & MIRROR_BIT(at)) ||
		    !restore_read_lane(r, at, offset, len))
			continue;
		/* The member may have been excluded meanwhile, and lack bytes that were
		 * acknowledged after that. */
		if (!(atomic_load(&r->sources) & MIRROR_BIT(at)))
			continue;
		*slot = at;
		return true;
	}
	return false;
}

const uint8_t *restore_read(struct restore *r, uint64_t offset, uint32_t len, unsigned *slot)
{
	uint64_t since = clock_now_ns();

	while (!restore_read_one(r, offset, len, slot)) {
		/* A connection may be about to be made. */
		if (!atomic_load(&r->sources) || atomic_load(&r->stopping) ||
		    clock_now_ns() - since > r->patience_ns)
			return NULL;
		restore_pause(0);
	}
	atomic_fetch_add(&r->progress, 1);
	return r->buffers + (size_t)*slot * RESTORE_PIECE;
}
