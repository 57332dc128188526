/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The STag table: a hash table with chains. A killed region stays in its chain until its last
 * reference is dropped. Until then no other region gets the same STag, and a forked child finds
 * every region.
 *
 * While the table exists, the memory of a region's description (struct mr) is reused for
 * descriptions only. So a thread that remembers a description may access it even after the region
 * was deregistered (mr_hold_near()). The thread first counts a hold. If the description is not
 * killed after that, it describes a registered region, which the hold now keeps, and the thread
 * compares the STag.
 */
#include "softrnic/rnic/mr_impl.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/rand.h"
#include "verbs_ext/verbs_ext.h"

#define INITIAL_BUCKETS 64 /* a power of two, like all later sizes */

static struct list *mr_buckets_new(size_t n)
{
	struct list *buckets = malloc(n * sizeof(*buckets));

	for (size_t i = 0; buckets && i < n; i++)
		list_init(&buckets[i]);
	return buckets;
}

/* STags are random, so the lowest bits of the index serve as a hash. */
struct list *mr_bucket_of(const struct mr_table *table, uint32_t stag)
{
	return &table->buckets[MR_INDEX(stag) & (table->num_buckets - 1)];
}

struct mr *mr_find_locked(const struct mr_table *table, uint32_t stag)
{
	struct list *head = mr_bucket_of(table, stag), *it;
	struct mr *found = NULL;

	list_for_each (it, head) {
		struct mr *mr = container_of(it, struct mr, link);

		if (mr->ibv.rkey != stag)
			continue;
		found = mr;
		if (!atomic_load_explicit(&mr->killed, memory_order_relaxed))
			break;
	}
	return found;
}

/* Make the table larger. A failed allocation is not an error, because longer chains are only
 * slower. */
static void mr_grow_locked(struct mr_table *table)
{
	struct list *old = table->buckets, *n;
	size_t old_size = table->num_buckets;
	struct list *buckets = mr_buckets_new(old_size * 2);

	if (!buckets)
		return;
	table->buckets = buckets;
	table->num_buckets = old_size * 2;
	for (size_t i = 0; i < old_size; i++) {
		while ((n = list_pop(&old[i]))) {
			struct mr *mr = container_of(n, struct mr, link);

			list_add_tail(mr_bucket_of(table, mr->ibv.rkey), n);
		}
	}
	free(old);
}

int mr_table_new(struct mr_table **out)
{
	struct mr_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->num_buckets = INITIAL_BUCKETS;
	table->buckets = mr_buckets_new(table->num_buckets);
	if (!table->buckets) {
		free(table);
		return -ENOMEM;
	}
	list_init(&table->spare);
	pthread_mutex_init(&table->lock, NULL);
	pthread_cond_init(&table->idle, NULL);
	*out = table;
	return 0;
}

void mr_table_delete(struct mr_table *table)
{
	struct list *it;

	if (!table)
		return;
	assert(table->count == 0);
	while ((it = list_pop(&table->spare)))
		free(container_of(it, struct mr, link));
	pthread_cond_destroy(&table->idle);
	pthread_mutex_destroy(&table->lock);
	free(table->buckets);
	free(table);
}

void mr_table_atfork_prepare(struct mr_table *table)
{
	pthread_mutex_lock(&table->lock);
}

void mr_table_atfork_parent(struct mr_table *table)
{
	pthread_mutex_unlock(&table->lock);
}

void mr_table_atfork_child(struct mr_table *table)
{
	struct list *it;

	table->forked = true;
	for (size_t i = 0; i < table->num_buckets; i++) {
		list_for_each (it, &table->buckets[i]) {
			struct mr *mr = container_of(it, struct mr, link);

			/*
			 * The threads that held the region exist only in the parent. The library's
			 * own mappings of the files, which later write-backs would need, also exist
			 * only in the parent.
			 */
			atomic_store(&mr->holds, 0);
			mr->backing.lasting = false;
		}
	}
	/* The threads that wait for regions do not exist in the child. */
	atomic_store(&table->waiters, 0);
	pthread_cond_init(&table->idle, NULL);
	pthread_mutex_unlock(&table->lock);
}

bool mr_wraps(uint64_t start, uint64_t len)
{
	return len > 0 && len - 1 > UINT64_MAX - start;
}

/* Remote write access requires local write access (ibv_reg_mr(3)). */
static bool mr_access_is_valid(int access)
{
	bool writes = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);

	return !writes || (access & IBV_ACCESS_LOCAL_WRITE);
}

static bool mr_has_index_locked(const struct mr_table *table, uint32_t stag)
{
	struct list *head = mr_bucket_of(table, stag), *it;

	list_for_each (it, head)
		if (MR_INDEX(container_of(it, struct mr, link)->ibv.rkey) == MR_INDEX(stag))
			return true;
	return false;
}

uint32_t mr_new_stag_locked(struct mr_table *table)
{
	uint32_t stag;

	do {
		stag = rand_u32();
	} while (stag == 0 || mr_has_index_locked(table, stag));
	return stag;
}

void mr_reserve_locked(struct mr_table *table, struct mr *mr, uint32_t stag)
{
	mr->ibv.lkey = mr->ibv.rkey = mr->ibv.handle = stag;
	if (++table->count > table->num_buckets)
		mr_grow_locked(table);
	list_add_tail(mr_bucket_of(table, stag), &mr->link);
}

void mr_publish_locked(struct mr_table *table, struct mr *mr, uint32_t stag)
{
	mr_reserve_locked(table, mr, stag);
	atomic_store(&mr->killed, false);
}

struct mr *mr_alloc(struct mr_table *table)
{
	struct list *it;
	struct mr *mr;

	pthread_mutex_lock(&table->lock);
	it = list_pop(&table->spare);
	pthread_mutex_unlock(&table->lock);
	if (it)
		return container_of(it, struct mr, link);
	mr = calloc(1, sizeof(*mr));
	if (mr) {
		mr->table = table;
		mr->killed = true;
	}
	return mr;
}

int mr_make(struct mr_table *table, struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
	    int access, const struct mr_backing *backing, struct mr **out)
{
	struct mr *mr;

	if (len == 0 || mr_wraps((uintptr_t)addr, len) || mr_wraps(iova, len) ||
	    !mr_access_is_valid(access))
		return -EINVAL;
	mr = mr_alloc(table);
	if (!mr)
		return -ENOMEM;
	mr->ibv = (struct ibv_mr){
		.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = len,
	};
	mr->start = addr;
	mr->now = mr;
	mr->iova = iova;
	mr->access = access;
	mr->backing = backing ? *backing : (struct mr_backing){0};
	mr->region = NULL;
	mr->window = NULL;
	mr->only = 0;
	mr->windows = 0;
	atomic_store(&mr->refs, 1);
	*out = mr;
	return 0;
}

void mr_discard(struct mr *made)
{
	struct mr_table *table = made->table;

	pthread_mutex_lock(&table->lock);
	list_add_tail(&table->spare, &made->link);
	pthread_mutex_unlock(&table->lock);
}

int mr_new(struct mr_table *table, struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
	   int access, const struct mr_backing *backing, struct mr **out)
{
	int ret = mr_make(table, pd, addr, len, iova, access, backing, out);

	if (ret)
		return ret;
	pthread_mutex_lock(&table->lock);
	mr_publish_locked(table, *out, mr_new_stag_locked(table));
	pthread_mutex_unlock(&table->lock);
	return 0;
}

void mr_succeed(struct mr *handle, struct mr *next)
{
	struct mr_table *table = handle->table;
	struct mr *former = handle->now;

	pthread_mutex_lock(&table->lock);
	assert(former->killed);
	mr_publish_locked(table, next, handle->ibv.rkey);
	handle->now = next;
	handle->ibv.pd = next->ibv.pd;
	handle->ibv.addr = next->ibv.addr;
	handle->ibv.length = next->ibv.length;
	pthread_mutex_unlock(&table->lock);
	if (former != handle)
		mr_delete(former);
}

void mr_kill(struct mr *mr)
{
	pthread_mutex_lock(&mr->table->lock);
	mr->killed = true;
	pthread_mutex_unlock(&mr->table->lock);
}

int mr_try_kill(struct mr *mr)
{
	int ret = 0;

	pthread_mutex_lock(&mr->table->lock);
	if (mr->windows)
		ret = -EBUSY;
	else
		mr->killed = true;
	pthread_mutex_unlock(&mr->table->lock);
	return ret;
}

void mr_wait_idle(struct mr *mr)
{
	struct mr_table *table = mr->table;

	pthread_mutex_lock(&table->lock);
	assert(mr->killed);
	/* must precede the read of `holds`, see mr_release() */
	atomic_fetch_add(&table->waiters, 1);
	while (atomic_load(&mr->holds) > 0)
		pthread_cond_wait(&table->idle, &table->lock);
	atomic_fetch_sub(&table->waiters, 1);
	pthread_mutex_unlock(&table->lock);
}

bool mr_is_idle(struct mr *mr)
{
	return atomic_load(&mr->holds) == 0;
}

void mr_ref(struct mr *mr)
{
	atomic_fetch_add(&mr->refs, 1);
}

void mr_unref(struct mr *mr)
{
	struct mr_table *table = mr->table;
	struct mr_backing backing;

	if (atomic_fetch_sub(&mr->refs, 1) != 1)
		return;
	pthread_mutex_lock(&table->lock);
	assert(mr->killed);
	backing = mr->backing;
	list_del(&mr->link);
	list_add_tail(&table->spare, &mr->link);
	table->count--;
	pthread_mutex_unlock(&table->lock);
	if (backing.drop)
		backing.drop(backing.persist);
}

void mr_delete(struct mr *mr)
{
	if (mr)
		mr_unref(mr);
}

bool mr_is_killed(struct mr *mr)
{
	return atomic_load(&mr->killed);
}

enum mr_verdict mr_refusal(const struct mr *mr, struct mr_need need)
{
	if (atomic_load(&mr->killed))
		return MR_BAD_STAG;
	if (mr->ibv.pd != need.pd)
		return MR_BAD_PD;
	if (!mr_permits(mr, need))
		return MR_BAD_ACCESS;
	return mr_wraps(need.to, need.len) ? MR_TO_WRAP : MR_BAD_BOUNDS;
}

static enum mr_verdict mr_look_up(struct mr_table *table, uint32_t stag, struct mr_need w,
				  struct mr **out, void **ptr)
{
	enum mr_verdict verdict = MR_BAD_STAG;
	struct mr *mr;

	pthread_mutex_lock(&table->lock);
	mr = mr_find_locked(table, stag);
	if (mr)
		verdict = mr_check(mr, w, ptr);
	if (verdict == MR_OK) {
		atomic_fetch_add(&mr->holds, 1);
		*out = mr;
	}
	pthread_mutex_unlock(&table->lock);
	return verdict;
}

enum mr_verdict mr_hold(struct mr_table *table, const struct ibv_pd *pd, uint32_t stag, uint64_t to,
			uint64_t len, int access, struct mr **out, void **ptr)
{
	struct mr_need w = {.pd = pd, .to = to, .len = len, .all = access};

	return mr_look_up(table, stag, w, out, ptr);
}

/* Does the remembered description still belong to the region with this STag? Returns true with the
 * region held. If it returns false, the description may belong to any region. */
static bool mr_is_near(struct mr_near *near, uint32_t stag)
{
	struct mr *mr = near->mr;

	if (!mr || near->held)
		return false;
	near->held = true;
	mr_hold_again(mr);
	if (!atomic_load(&mr->killed))
		return mr->ibv.rkey == stag;
	mr_release_near(near);
	return false;
}

/* Look up a region that is not the one held by `near`. */
enum mr_verdict mr_hold_other(struct mr_table *table, struct mr_near *near, uint32_t stag,
			      struct mr_need need, void **ptr)
{
	enum mr_verdict verdict;
	struct mr *mr;

	if (mr_is_near(near, stag))
		return mr_check(near->mr, need, ptr);
	verdict = mr_look_up(table, stag, need, &mr, ptr);
	if (verdict != MR_OK)
		return verdict;
	mr_release_near(near);
	*near = (struct mr_near){.mr = mr, .held = true};
	return MR_OK;
}

/* A hold that the parent took before the fork() does not count in the child: ignore it. */
static void mr_release_forked(struct mr *mr)
{
	unsigned holds = atomic_load(&mr->holds);

	while (holds > 0 && !atomic_compare_exchange_weak(&mr->holds, &holds, holds - 1))
		;
}

/*
 * After the last hold is released, another thread may free the region, so this function reads only
 * the table from then on. A waiting thread first adds itself to `waiters` and then reads `holds`.
 * So either the waiting thread sees that no hold is left, or this function sees the waiting thread.
 */
void mr_release(struct mr *mr)
{
	struct mr_table *table = mr->table;
	unsigned before = 1;

	if (__builtin_expect(table->forked, 0))
		mr_release_forked(mr);
	else
		before = atomic_fetch_sub(&mr->holds, 1);
	assert(before > 0);
	if (before > 1 || atomic_load(&table->waiters) == 0)
		return;
	pthread_mutex_lock(&table->lock);
	pthread_cond_broadcast(&table->idle);
	pthread_mutex_unlock(&table->lock);
}

enum mr_verdict mr_invalidate(struct mr_table *table, const struct ibv_pd *pd, uint32_t stag)
{
	enum mr_verdict verdict = MR_OK;
	struct mr *mr;

	pthread_mutex_lock(&table->lock);
	mr = mr_find_locked(table, stag);
	if (!mr || mr->killed)
		verdict = MR_BAD_STAG;
	else if (mr->ibv.pd != pd)
		verdict = MR_BAD_PD;
	else if (!(mr->access & VEXT_ACCESS_REMOTE_INVALIDATE) || mr->windows)
		verdict = MR_BAD_ACCESS;
	else
		mr->killed = true;
	pthread_mutex_unlock(&table->lock);
	return verdict;
}
