/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/arrival.h"

#include <string.h>

void arrivals_init(struct arrivals *a)
{
	*a = (struct arrivals){.count = {0}};
	list_init(&a->list);
}

void arrivals_add(struct arrivals *a, struct arrival *one)
{
	list_init(&one->node);
	if (one->state != ARRIVAL_ADMITTED)
		list_add_tail(&a->list, &one->node);
	a->count[one->state]++;
}

void arrivals_remove(struct arrivals *a, struct arrival *one)
{
	list_del(&one->node);
	a->count[one->state]--;
}

void arrivals_enter(struct arrivals *a, struct arrival *one, enum arrival_state state)
{
	a->count[one->state]--;
	a->count[state]++;
	one->state = state;
	if (state == ARRIVAL_ADMITTED)
		list_del(&one->node);
}

/* Returns the oldest pending connection from addr (NULL: from any address), or NULL if fewer than
 * `limit` such connections are pending. */
static struct arrival *arrivals_oldest(const struct arrivals *a, const char *addr, unsigned limit)
{
	struct arrival *oldest = NULL;
	struct list *it;
	unsigned count = 0;

	list_for_each (it, &a->list) {
		struct arrival *one = container_of(it, struct arrival, node);

		if (one->state != ARRIVAL_PENDING || (addr && strcmp(addr, one->addr) != 0))
			continue;
		oldest = oldest ? oldest : one;
		count++;
	}
	return count < limit ? NULL : oldest;
}

struct arrival *arrivals_surplus(const struct arrivals *a, const char *addr, unsigned max)
{
	struct arrival *one = arrivals_oldest(a, addr, max > 4 ? max / 4 : 1);

	return one ? one : arrivals_oldest(a, NULL, max);
}

struct arrival *arrivals_overdue(const struct arrivals *a, uint64_t now, uint64_t *nearest)
{
	struct list *it;

	*nearest = UINT64_MAX;
	list_for_each (it, &a->list) {
		struct arrival *one = container_of(it, struct arrival, node);

		if (one->deadline <= now)
			return one;
		if (one->deadline < *nearest)
			*nearest = one->deadline;
	}
	return NULL;
}
