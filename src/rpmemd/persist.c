/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/persist.h"

#include <errno.h>
#include <libpmem.h>
#include <sys/mman.h>
#include <unistd.h>

/* A write-back that has begun and not ended. */
struct persist_turn {
	struct persist_turn *next;
	uint64_t number;
};

static int persist_msync(void *addr, size_t len)
{
	return msync(addr, len, MS_SYNC) ? -errno : 0;
}

void persist_init(struct persist *p, void *base, uint64_t size, bool is_direct)
{
	*p = (struct persist){
		.base = base, .size = size, .is_direct = is_direct, .write_back = persist_msync};
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->ended, NULL);
}

void persist_fini(struct persist *p)
{
	if (!p->base)
		return;
	pthread_cond_destroy(&p->ended);
	pthread_mutex_destroy(&p->lock);
	p->base = NULL;
}

static void persist_begin(struct persist *p, struct persist_turn *turn)
{
	pthread_mutex_lock(&p->lock);
	turn->number = p->begun++;
	turn->next = p->turns;
	p->turns = turn;
	pthread_mutex_unlock(&p->lock);
}

static bool persist_has_older(const struct persist *p, uint64_t number)
{
	for (const struct persist_turn *t = p->turns; t; t = t->next)
		if (t->number < number)
			return true;
	return false;
}

/* Finish a write-back. Returns the pool's failure if a write-back that began before this call has
 * failed. */
static int persist_end(struct persist *p, struct persist_turn *turn, int rc)
{
	struct persist_turn **at = &p->turns;
	uint64_t now;

	pthread_mutex_lock(&p->lock);
	if (rc && !p->failed)
		p->failed = rc;
	while (*at != turn)
		at = &(*at)->next;
	*at = turn->next;
	pthread_cond_broadcast(&p->ended);
	now = p->begun;
	while (!p->failed && persist_has_older(p, now))
		pthread_cond_wait(&p->ended, &p->lock);
	rc = p->failed;
	pthread_mutex_unlock(&p->lock);
	return rc;
}

static int persist_file(struct persist *p, uint64_t offset, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = offset & ~(page - 1);
	struct persist_turn turn;

	persist_begin(p, &turn);
	return persist_end(p, &turn,
			   p->write_back(p->base + first, (size_t)(offset - first + len)));
}

static bool persist_is_within(const struct persist *p, uint64_t offset, uint64_t len)
{
	return offset <= p->size && len <= p->size - offset;
}

int persist_range(struct persist *p, uint64_t offset, uint64_t len)
{
	if (!persist_is_within(p, offset, len))
		return -EINVAL;
	if (!p->is_direct)
		return persist_file(p, offset, len);
	pmem_persist(p->base + offset, (size_t)len);
	return 0;
}

int persist_deep(struct persist *p, uint64_t offset, uint64_t len)
{
	struct persist_turn turn;

	if (!persist_is_within(p, offset, len))
		return -EINVAL;
	if (!p->is_direct)
		return persist_file(p, offset, len);
	persist_begin(p, &turn);
	return persist_end(p, &turn, pmem_deep_persist(p->base + offset, (size_t)len) ? -errno : 0);
}
