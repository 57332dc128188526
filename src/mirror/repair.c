/* SPDX-License-Identifier: BSD-3-Clause */
/* Begins the work that makes a member equal. */
#include "mirror/repair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "mirror/absent.h"
#include "mirror/core/meta.h"
#include "mirror/core/resync_plan.h"
#include "mirror/errmsg.h"
#include "mirror/repair_impl.h"

uint64_t repair_now_us(void)
{
	return clock_now_ns() / NSEC_PER_US;
}

static void repair_wake(struct repair *r)
{
	ownfd_wake(r->wake_fd);
}

int repair_open(struct rpmirror *m)
{
	struct repair *r = calloc(1, sizeof(*r));

	if (!r)
		return errmsg_fail(RPMIRROR_E_NOMEM, "out of memory");
	r->m = m;
	r->wake_fd = ownfd_event(EFD_NONBLOCK);
	if (r->wake_fd < 0) {
		free(r);
		return errmsg_fail(RPMIRROR_E_PROVIDER, "cannot make an eventfd: %s",
				   strerror(errno));
	}
	r->place = m->control_place;
	r->place.sq_size = REPAIR_QUEUE;
	m->repair = r;
	return 0;
}

static void repair_stop_thread(struct rpmirror *m)
{
	struct repair *r = m->repair;

	if (!r->has_thread)
		return;
	pthread_mutex_lock(&m->lock);
	r->stopping = true;
	repair_wake(r);
	pthread_mutex_unlock(&m->lock);
	pthread_join(r->thread, NULL);
	r->has_thread = false;
}

void repair_leave(struct rpmirror *m)
{
	if (m->repair)
		repair_stop_thread(m);
}

void repair_close(struct rpmirror *m)
{
	struct repair *r = m->repair;

	if (!r)
		return;
	repair_stop_thread(m);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct repair_member *rm = r->members[slot];

		if (!rm)
			continue;
		link_close(&rm->bulk);
		free(rm->bits);
		free(rm->unsure);
		free(rm->compare_bits);
		ranges_union_clear(&rm->ranges);
		ranges_union_clear(&rm->bad);
		free(rm);
	}
	if (r->mr)
		rpma_mr_dereg(&r->mr);
	free(r->buffers);
	close(r->wake_fd);
	free(r);
	m->repair = NULL;
}

struct repair_member *repair_member_get(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = m->repair->members[slot];
	size_t words = resync_words(m->size);

	if (rm)
		return rm;
	rm = calloc(1, sizeof(*rm));
	if (!rm)
		return NULL;
	rm->bits = calloc(words, sizeof(uint64_t));
	rm->unsure = calloc(words, sizeof(uint64_t));
	if (!rm->bits || !rm->unsure) {
		free(rm->bits);
		free(rm->unsure);
		free(rm);
		return NULL;
	}
	m->repair->members[slot] = rm;
	return rm;
}

static bool repair_make_buffers(struct repair *r)
{
	const size_t size = (size_t)REPAIR_WORKS * REPAIR_PIECE;

	if (r->mr)
		return true;
	if (!r->buffers)
		r->buffers = aligned_alloc(MIRROR_BLOCK, size);
	return r->buffers &&
	       !rpma_mr_reg(r->m->peer, r->buffers, size, RPMA_MR_USAGE_WRITE_SRC, &r->mr);
}

void repair_set_stage(struct rpmirror *m, struct repair_member *rm, enum repair_stage stage)
{
	if (rm->stage == REPAIR_IDLE && stage != REPAIR_IDLE)
		m->repair->active++;
	if (rm->stage != REPAIR_IDLE && stage == REPAIR_IDLE) {
		m->repair->active--;
		repair_leave_link(m->repair, rm);
	}
	rm->stage = stage;
	rm->question = 0;
	rm->again_ms = 0;
	repair_wake(m->repair);
}

void repair_clear_bits(const struct rpmirror *m, struct repair_member *rm)
{
	size_t bytes = resync_words(m->size) * sizeof(uint64_t);

	memset(rm->bits, 0, bytes);
	memset(rm->unsure, 0, bytes);
}

void repair_init_resync(struct rpmirror *m, struct repair_member *rm, enum resync_mode mode)
{
	struct resync_config config = {
		.size = m->size,
		.bits = rm->bits,
		.unsure = rm->unsure,
		.piece = REPAIR_PIECE,
		.limits = {.min_rate = RESYNC_MIN_RATE_DEFAULT},
		.calm_us = m->repair->calm_us,
	};

	resync_init(&rm->rs, mode, &config, repair_now_us());
}

void repair_connect(struct rpmirror *m, unsigned slot)
{
	const struct mirror_member *to = &m->primary.rec.config.members[slot];
	struct repair_member *rm = m->repair->members[slot];
	struct greeting greeting = {.uuid = m->uuid,
				    .epoch = m->epoch,
				    .copy_id = to->id,
				    .from = m->self,
				    .to = (uint8_t)slot,
				    .kind = GREETING_BULK};

	rm->generation++;
	rm->flush = rm->flush_done = rm->unflushed = 0;
	link_open(&rm->bulk, &m->repair->place, to->host, to->port, &greeting, clock_boot_ms());
	repair_set_stage(m, rm, REPAIR_OPENING);
}

struct repair_member *repair_make_ready(struct rpmirror *m, unsigned slot)
{
	struct repair_member *rm = repair_member_get(m, slot);

	return rm && repair_make_buffers(m->repair) && repair_start_thread(m->repair) ? rm : NULL;
}

/* Do the preparation that EQUALISE and RESYNC share. */
static struct repair_member *repair_prepare(struct rpmirror *m, unsigned slot, bool is_equalise)
{
	struct repair_member *rm = repair_make_ready(m, slot);

	if (!rm) {
		act_lost(m, slot, "there is no memory to make it equal");
		return NULL;
	}
	repair_drop(m, slot);
	rm->is_equalise = is_equalise;
	return rm;
}

/* ---- EQUALISE ---- */

/* List the bitmap as extents, because it is recorded in this form. */
static bool repair_list_bits(struct rpmirror *m, struct repair_member *rm)
{
	const uint64_t words = MIRROR_EXTENT / MIRROR_BLOCK / 64, all = resync_words(m->size);

	for (uint64_t first = 0; first < all; first += words) {
		struct mirror_range extent = {first / words * MIRROR_EXTENT, MIRROR_EXTENT};
		uint64_t any = 0;

		for (uint64_t w = first; w < first + words && w < all; w++)
			any |= rm->bits[w];
		if (extent.len > m->size - extent.offset)
			extent.len = m->size - extent.offset;
		if (any && !ranges_union_add(&rm->ranges, &extent, 1))
			return false;
	}
	return true;
}

/* List the ranges that both ends have to record. */
static bool repair_list_ranges(struct rpmirror *m, struct repair_member *rm, bool serving,
			       bool whole)
{
	struct mirror_range all = {0, m->size};

	ranges_union_clear(&rm->ranges);
	rm->range_sent = 0;
	rm->is_whole = whole;
	if (whole)
		return ranges_union_add(&rm->ranges, &all, 1);
	if (serving)
		return repair_list_bits(m, rm);
	return ranges_union_add(&rm->ranges, m->records.v, m->records.count);
}

void repair_equalise(struct rpmirror *m, const struct primary_action *action)
{
	unsigned slot = action->slot;
	bool whole = action->whole;

	/* If flushes are sent to the member from now on, the set already serves. */
	bool serving = primary_sends_to(&m->primary) & MIRROR_BIT(slot);
	struct repair_member *rm;

	if (action->nothing || (!whole && !serving && !m->records.count)) {
		primary_on_equal(&m->primary, (uint8_t)slot);
		return;
	}
	rm = repair_prepare(m, slot, true);
	if (!rm)
		return;
	/* If the set already serves, the member lacks the flushes since it was lost; from now on
	 * it gets all flushes. */
	whole = whole || (serving && !rm->covers);
	if (!serving || whole)
		repair_clear_bits(m, rm);
	repair_init_resync(m, rm, serving ? RESYNC_JOINING : RESYNC_EQUALISE);
	if (!repair_list_ranges(m, rm, serving, whole)) {
		act_lost(m, slot, "there is no memory to make it equal");
		return;
	}
	if (!serving || whole)
		resync_mark(&rm->rs, rm->ranges.v, rm->ranges.count, true);
	rm->covers = true;
	repair_connect(m, slot);
}

/* ---- RESYNC ---- */

/* Mark the ranges of the file that have data; the rest of an empty copy already has the zeros of
 * holes. */
static void repair_mark_data(struct rpmirror *m, struct repair_member *rm)
{
	off_t at = 0;

	while (at < (off_t)m->size) {
		off_t data = lseek(m->copy.fd, at, SEEK_DATA), hole;
		struct mirror_range range;

		if (data < 0 && errno == ENXIO)
			return;
		hole = data < 0 ? -1 : lseek(m->copy.fd, data, SEEK_HOLE);
		if (hole < 0) { /* the file system does not report holes */
			data = at;
			hole = (off_t)m->size;
		}
		if (hole > (off_t)m->size)
			hole = (off_t)m->size;
		if (data >= hole)
			return;
		range = (struct mirror_range){(uint64_t)data, (uint64_t)(hole - data)};
		resync_mark(&rm->rs, &range, 1, false);
		at = hole;
	}
}

static enum resync_verdict repair_plan(struct rpmirror *m, unsigned slot, bool whole, char *why,
				       size_t size)
{
	const struct set_member *member = &m->members[slot];
	const struct primary_report *report = &member->report;
	const struct repair_member *rm = m->repair->members[slot];
	const struct mirror_record *rec = &m->primary.rec;
	struct resync_facts facts = {
		.rec = rec,
		.self = m->self,
		.bitmap_is_usable = rm->covers || absent_is_known(m, slot),
		.slot = (uint8_t)slot,
		.uuid = m->uuid,
		.copy_id = rec->config.members[slot].id,
		.own_size = m->size,
		.size = member->copy_size,
		.copy = report->copy,
		.held = report->held,
		.uncertain = report->uncertain || whole,
		.epoch = member->copy_epoch,
		.source_id = rm->covers ? rec->config.members[m->self].id : member->source_id,
	};

	return resync_plan(&facts, why, size);
}

static void repair_mark_plan(struct rpmirror *m, unsigned slot, enum resync_verdict verdict)
{
	struct repair_member *rm = m->repair->members[slot];
	struct mirror_range all = {0, m->size};

	if (verdict == RESYNC_PLAN_FULL)
		repair_mark_data(m, rm);
	else if (verdict != RESYNC_PLAN_BITMAP)
		resync_mark(&rm->rs, &all, 1, true);
	else if (!rm->covers)
		absent_load(m, slot, &rm->rs);
	rm->covers = true;
}

void repair_resync(struct rpmirror *m, unsigned slot, bool whole)
{
	struct repair_member *rm = repair_prepare(m, slot, false);
	enum resync_verdict verdict;
	char why[200];

	if (!rm)
		return;
	verdict = repair_plan(m, slot, whole, why, sizeof(why));
	if (verdict == RESYNC_PLAN_REFUSE || verdict == RESYNC_PLAN_SPLIT) {
		act_lost(m, slot, why);
		return;
	}
	if (verdict != RESYNC_PLAN_BITMAP || !rm->covers)
		repair_clear_bits(m, rm);
	repair_init_resync(m, rm, RESYNC_CATCH_UP);
	repair_mark_plan(m, slot, verdict);
	snprintf(m->members[slot].why, sizeof(m->members[slot].why), "resync by %s: %s",
		 resync_verdict_2str(verdict), why);
	rm->by_bitmap = verdict == RESYNC_PLAN_BITMAP;
	repair_connect(m, slot);
}
