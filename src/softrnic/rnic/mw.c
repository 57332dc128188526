/* SPDX-License-Identifier: BSD-3-Clause */
/* mw.c -- memory windows in the STag table. */
#include "softrnic/rnic/mw.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "softrnic/rnic/mr_impl.h"
#include "softrnic/rnic/rnic.h"

#define MW_NEEDS_LOCAL_WRITE (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define MW_FLUSHES           (VEXT_ACCESS_FLUSH_GLOBAL | VEXT_ACCESS_FLUSH_PERSISTENT)
#define MW_ACCESS                                                                                  \
	(RNIC_REMOTE_ACCESS | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

/* --- creation and end --------------------------------------------------------------------- */

/* Describe an unbound window. The description has no protection domain, so a look-up for regions
 * never accepts it. */
static void mw_describe(struct mr *mr, struct mw *mw)
{
	mr->ibv = (struct ibv_mr){.context = mw->ibv.context};
	mr->start = NULL;
	mr->now = mr;
	mr->iova = 0;
	mr->access = 0;
	mr->backing = (struct mr_backing){0};
	mr->region = NULL;
	mr->window = mw;
	mr->only = 0;
	mr->windows = 0;
	atomic_store(&mr->refs, 1);
}

int mw_new(struct mr_table *table, struct ibv_pd *pd, enum ibv_mw_type type, struct mw **out)
{
	struct mw *mw = calloc(1, sizeof(*mw));
	struct mr *mr = mw ? mr_alloc(table) : NULL;

	if (!mr) {
		free(mw);
		return -ENOMEM;
	}
	mw->ibv = (struct ibv_mw){.context = pd->context, .pd = pd, .type = type};
	mw->table = table;
	mw->now = mr;
	mw_describe(mr, mw);
	pthread_mutex_lock(&table->lock);
	mr_reserve_locked(table, mr, mr_new_stag_locked(table));
	pthread_mutex_unlock(&table->lock);
	mw->ibv.rkey = mw->ibv.handle = mr->ibv.rkey;
	*out = mw;
	return 0;
}

void mw_delete(struct mw *mw)
{
	struct mr *now = mw->now;

	pthread_mutex_lock(&now->table->lock);
	assert(!now->region);
	now->window = NULL;
	pthread_mutex_unlock(&now->table->lock);
	mr_delete(now);
	free(mw);
}

struct mr *mw_kill(struct mw *mw)
{
	struct mr *now;

	pthread_mutex_lock(&mw->table->lock);
	now = mw->now;
	now->killed = true;
	mw->ended = true;
	mr_ref(now);
	pthread_mutex_unlock(&mw->table->lock);
	return now;
}

struct mr *mw_former(struct mw *mw)
{
	struct mr *now;

	pthread_mutex_lock(&mw->table->lock);
	now = mw->now;
	mr_ref(now);
	pthread_mutex_unlock(&mw->table->lock);
	return now;
}

void mw_unbind(struct mr *now)
{
	struct mr *region;

	pthread_mutex_lock(&now->table->lock);
	assert(now->killed);
	region = now->region;
	now->region = NULL;
	if (region)
		region->windows--;
	pthread_mutex_unlock(&now->table->lock);
	if (region)
		mr_unref(region);
}

/* --- binding ------------------------------------------------------------------------------ */

/* Find the window that the index of this STag belongs to. */
static struct mw *mw_find_locked(const struct mr_table *table, uint32_t stag)
{
	struct list *head = mr_bucket_of(table, stag), *it;

	list_for_each (it, head) {
		struct mr *mr = container_of(it, struct mr, link);

		if (MR_INDEX(mr->ibv.rkey) == MR_INDEX(stag) && mr->window && mr->window->now == mr)
			return mr->window;
	}
	return NULL;
}

/* End the window's former binding, so that it can be bound again. A binding of type 2 must be
 * invalidated first (-EBUSY). Returns 0 or -errno. */
static int mw_end_former(struct mw *mw)
{
	if (!mw->now->region)
		return 0;
	if (mw->ibv.type != IBV_MW_TYPE_1)
		return -EBUSY;
	mw->now->killed = true;
	return mr_is_idle(mw->now) ? 0 : -EAGAIN;
}

/* May a window on this region grant these rights? A window never grants more than its region.
 * Rights that let a peer write require local write access. */
static bool mw_may_grant(const struct mr *region, int access)
{
	if (access & ~MW_ACCESS || access & MW_FLUSHES & ~region->access)
		return false;
	return !(access & MW_NEEDS_LOCAL_WRITE) || region->access & IBV_ACCESS_LOCAL_WRITE;
}

/* Find the region for a binding; *ptr is the address of its bytes. Returns NULL if there is no such
 * region, or if it does not permit the rights or the bounds. */
static struct mr *mw_region_locked(const struct mr_table *table, const struct mw_bind *b,
				   void **ptr)
{
	struct mr_need need = {
		.pd = b->pd, .to = b->addr, .len = b->len, .all = IBV_ACCESS_MW_BIND};
	struct mr *region = mr_find_locked(table, b->lkey);

	if (!region || mr_check(region, need, ptr) != MR_OK || !mw_may_grant(region, b->access))
		return NULL;
	return region;
}

static void mw_open(struct mr *next, const struct mw_bind *b, struct mr *region, void *ptr)
{
	next->start = next->ibv.addr = ptr;
	next->ibv.length = b->len;
	next->iova = b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr;
	next->access = b->access & RNIC_REMOTE_ACCESS;
	next->backing = region->backing;
	/* the binding holds a reference to the region, and the region calls drop() */
	next->backing.drop = NULL;
	next->region = region;
	mr_ref(region);
	region->windows++;
}

/* Make `next` the window's description. *former is the old description, which the caller then owns.
 * Returns 0 or -errno. */
static int mw_bind_locked(struct mr_table *table, const struct mw_bind *b, struct mr *next,
			  struct mr **former)
{
	struct mw *mw = mw_find_locked(table, b->window);
	struct mr *region = NULL;
	void *ptr = NULL;
	int ret;

	if (!mw || mw->ended || mw->ibv.pd != b->pd || MR_INDEX(b->stag) != MR_INDEX(b->window) ||
	    (b->len == 0 && mw->ibv.type != IBV_MW_TYPE_1))
		return -EINVAL;
	if (b->len > 0 && !(region = mw_region_locked(table, b, &ptr)))
		return -EACCES;
	ret = mw_end_former(mw);
	if (ret)
		return ret;
	mw_describe(next, mw);
	if (region)
		mw_open(next, b, region, ptr);
	next->only = mw->ibv.type == IBV_MW_TYPE_1 ? 0 : b->qp;
	if (region)
		mr_publish_locked(table, next, b->stag);
	else
		mr_reserve_locked(table, next, b->stag);
	*former = mw->now;
	(*former)->window = NULL;
	mw->now = next;
	return 0;
}

int mw_bind(struct mr_table *table, const struct mw_bind *b)
{
	struct mr *next = mr_alloc(table), *former;
	int ret;

	if (!next)
		return -ENOMEM;
	pthread_mutex_lock(&table->lock);
	ret = mw_bind_locked(table, b, next, &former);
	pthread_mutex_unlock(&table->lock);
	if (ret) {
		mr_discard(next);
		return ret;
	}
	mw_unbind(former);
	mr_delete(former);
	return 0;
}

bool mw_is_idle(struct mr_table *table, uint32_t stag)
{
	struct mw *mw;
	bool idle;

	pthread_mutex_lock(&table->lock);
	mw = mw_find_locked(table, stag);
	idle = !mw || mr_is_idle(mw->now);
	pthread_mutex_unlock(&table->lock);
	return idle;
}

/* --- use ---------------------------------------------------------------------------------- */

struct mr *mw_invalidate(struct mr_table *table, const struct ibv_pd *pd, uint64_t qp,
			 uint32_t stag)
{
	struct mr *mr;
	struct mw *mw;

	pthread_mutex_lock(&table->lock);
	mr = mr_find_locked(table, stag);
	mw = mr ? mr->window : NULL;
	if (!mw || mw->ibv.pd != pd || !mr->region || mr->only != qp)
		mr = NULL;
	if (mr) {
		mr->killed = true;
		mr_ref(mr);
	}
	pthread_mutex_unlock(&table->lock);
	return mr;
}

static enum mr_verdict mw_check(const struct mr *mr, struct mr_need need, uint64_t qp)
{
	if (!mr || mr->killed)
		return MR_BAD_STAG;
	if (!mr->window || mr->window->ibv.pd != need.pd || (mr->only && mr->only != qp))
		return MR_BAD_PD;
	if ((mr->access & need.all) != need.all || (need.any && !(mr->access & need.any)))
		return MR_BAD_ACCESS;
	if (!mr_covers(mr, need))
		return mr_wraps(need.to, need.len) ? MR_TO_WRAP : MR_BAD_BOUNDS;
	return MR_OK;
}

enum mr_verdict mw_hold_near(struct mr_table *table, struct mr_near *near, uint32_t stag,
			     struct mr_need need, uint64_t qp, void **ptr)
{
	enum mr_verdict verdict;
	struct mr *mr;

	pthread_mutex_lock(&table->lock);
	mr = mr_find_locked(table, stag);
	verdict = mw_check(mr, need, qp);
	if (verdict == MR_OK) {
		*ptr = (uint8_t *)mr->ibv.addr + (need.to - mr->iova);
		mr_hold_again(mr);
	}
	pthread_mutex_unlock(&table->lock);
	if (verdict != MR_OK)
		return verdict;
	mr_release_near(near);
	*near = (struct mr_near){.mr = mr, .held = true};
	return MR_OK;
}
