/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void counters_text(const struct rpma_conn *conn, char *text, size_t size)
{
	struct rpma_counter counters[COUNTERS_MAX];
	size_t count = COUNTERS_MAX, len = 0;

	text[0] = '\0';
	if (rpma_conn_get_counters(conn, counters, &count))
		return;
	for (size_t i = 0; i < count && i < COUNTERS_MAX && len < size; i++)
		if (counters[i].value)
			len += (size_t)snprintf(text + len, size - len, " %s=%" PRIu64,
						counters[i].name, counters[i].value);
}

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
