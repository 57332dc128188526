/* SPDX-License-Identifier: BSD-3-Clause */
#include "export/counters.h"

#include <string.h>

static void counters_add_one(struct counters *sum, const struct rpma_counter *counter)
{
	for (size_t i = 0; i < sum->count; i++) {
		if (strcmp(sum->counters[i].name, counter->name))
			continue;
		sum->counters[i].value += counter->value;
		return;
	}
	if (sum->count < COUNTERS_MAX)
		sum->counters[sum->count++] = *counter;
}

void counters_add_conn(struct counters *sum, const struct rpma_conn *conn)
{
	struct rpma_counter counters[COUNTERS_MAX];
	size_t count = COUNTERS_MAX;

	if (rpma_conn_get_counters(conn, counters, &count))
		return;
	for (size_t i = 0; i < count && i < COUNTERS_MAX; i++)
		counters_add_one(sum, &counters[i]);
}

void counters_add(struct counters *sum, const struct counters *more)
{
	for (size_t i = 0; i < more->count; i++)
		counters_add_one(sum, &more->counters[i]);
}
