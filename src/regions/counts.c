/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the server's counters for a client that watches the server. */
#include <string.h>

#include "regions/server_impl.h"

static uint64_t counts_value(const struct counters *sum, const char *name)
{
	for (size_t i = 0; i < sum->count; i++)
		if (!strcmp(sum->counters[i].name, name))
			return sum->counters[i].value;
	return 0;
}

struct counts_sum {
	struct counters counters;
	uint64_t clients;
};

static void counts_add_client(void *arg, const struct server_client_info *client)
{
	struct counts_sum *sum = arg;

	counters_add(&sum->counters, client->counters);
	sum->clients++;
}

static void counts_fill_region(struct region *r, struct hello_region_counts *out)
{
	struct lookup_answer latest;

	lookup_get(r->lookup, &latest);
	lookup_ask(r->lookup, false);
	memcpy(out->region, r->name, strlen(r->name));
	out->size = r->data.size;
	out->durability = (uint8_t)r->data.durability;
	out->status = (uint8_t)r->name_status;
	out->avail = latest.avail;
	out->room = latest.room;
}

void counts_make(struct server *s, struct hello_counts *counts)
{
	struct counts_sum sum = {.clients = 0};
	uint64_t gone = server_get_gone(s, &sum.counters);
	const char *name;

	server_for_each_client(s, counts_add_client, &sum);
	*counts = (struct hello_counts){.clients = sum.clients,
					.served = sum.clients + gone,
					.refused = s->refused,
					.count = (uint8_t)s->region_count};
	for (unsigned i = 0; (name = hello_value_name(i)); i++)
		counts->values[i] = counts_value(&sum.counters, name);
	for (unsigned i = 0; i < s->region_count; i++)
		counts_fill_region(&s->regions[i], &counts->regions[i]);
}
