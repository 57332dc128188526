/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that makes members equal. */
#include <poll.h>

#include "base/clock.h"
#include "base/thread.h"
#include "mirror/repair_impl.h"

#define REPAIR_FDS     (1 + 3 * MIRROR_MEMBERS_MAX)
#define REPAIR_LOOK_MS 100

static void repair_step_member(struct repair *r, unsigned slot)
{
	struct repair_member *rm = r->members[slot];
	uint64_t now = clock_boot_ms();

	if (!rm || rm->stage == REPAIR_IDLE)
		return;
	link_step(&rm->bulk, now);
	if (rm->bulk.state == LINK_ENDED)
		repair_on_end(r, slot, rm->bulk.why);
	else if (rm->question && now >= rm->deadline_ms)
		act_lost(r->m, slot, "its daemon does not answer");
	else if (rm->again_ms && now >= rm->again_ms)
		repair_ask_next(r->m, slot);
	else if (rm->stage == REPAIR_OPENING && rm->bulk.state == LINK_READY)
		repair_on_open(r->m, slot);
	else if (rm->stage != REPAIR_RUNNING || repair_pump_collect(r, slot))
		return;
	set_wake(r->m); /* so that the set's thread handles a loss */
}

static unsigned repair_list_fds(const struct repair *r, struct pollfd *fds)
{
	unsigned n = 0;

	fds[n++] = (struct pollfd){.fd = r->wake_fd, .events = POLLIN};
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct repair_member *rm = r->members[slot];
		struct rpma_cq *cq;
		int of_link[2], fd;
		unsigned count = rm ? link_fds(&rm->bulk, of_link) : 0;

		for (unsigned i = 0; i < count; i++)
			fds[n++] = (struct pollfd){.fd = of_link[i], .events = POLLIN};
		if (count && !rpma_conn_get_cq(rm->bulk.conn, &cq) && !rpma_cq_get_fd(cq, &fd))
			fds[n++] = (struct pollfd){.fd = fd, .events = POLLIN};
	}
	return n;
}

/* Sleep until `wake_us` or a limit. If no member is being made equal, sleep until woken. */
static void repair_sleep(struct repair *r, uint64_t wake_us)
{
	struct pollfd fds[REPAIR_FDS];
	unsigned n = repair_list_fds(r, fds);
	uint64_t now = repair_now_us(), us = wake_us > now ? wake_us - now : 0;
	struct timespec timeout = {.tv_nsec = REPAIR_LOOK_MS * (long)NSEC_PER_MS};
	bool is_idle = !r->active || r->m->has_lost_files;

	if (us < REPAIR_LOOK_MS * 1000)
		timeout.tv_nsec = (long)(us * NSEC_PER_US);
	pthread_mutex_unlock(&r->m->lock);
	if (is_idle)
		ownfd_wait(r->wake_fd);
	else
		ppoll(fds, n, &timeout, NULL);
	ownfd_clear(r->wake_fd);
	set_lock_in_turn(r->m);
}

static void repair_turn(struct repair *r)
{
	uint64_t wake = 0;

	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX && !r->m->has_lost_files; slot++)
		repair_step_member(r, slot);
	if (!r->m->has_lost_files) {
		wake = repair_pump_begin(r);
		repair_pump_digest(r);
	}
	repair_sleep(r, wake);
}

static void *repair_main(void *arg)
{
	struct repair *r = arg;

	set_lock_in_turn(r->m);
	while (!r->stopping)
		repair_turn(r);
	pthread_mutex_unlock(&r->m->lock);
	return NULL;
}

bool repair_start_thread(struct repair *r)
{
	if (!r->has_thread)
		r->has_thread = !thread_start(&r->thread, 0, repair_main, r);
	return r->has_thread;
}
