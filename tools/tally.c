/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tally.h"

static void add(struct tally *sum, const struct rpma_counter *counter)
{
	for (size_t i = 0; i < sum->count; i++) {
		if (strcmp(sum->counters[i].name, counter->name))
			continue;
		sum->counters[i].value += counter->value;
		return;
	}
	if (sum->count < TALLY_MAX)
		sum->counters[sum->count++] = *counter;
}

void tally_add(struct tally *sum, const struct rpma_conn *conn)
{
	struct rpma_counter counters[TALLY_MAX];
	size_t count = TALLY_MAX;

	if (rpma_conn_get_counters(conn, counters, &count))
		return;
	for (size_t i = 0; i < count && i < TALLY_MAX; i++)
		add(sum, &counters[i]);
}

void tally_add_all(struct tally *sum, const struct tally *more)
{
	for (size_t i = 0; i < more->count; i++)
		add(sum, &more->counters[i]);
}

void tally_print(const struct tally *sum, bool json)
{
	if (json)
		putchar('{');
	for (size_t i = 0; i < sum->count; i++)
		printf(json ? "%s\"%s\":%" PRIu64 : "%s%s=%" PRIu64,
		       !json ? " "
		       : i   ? ","
			     : "",
		       sum->counters[i].name, sum->counters[i].value);
	if (json)
		putchar('}');
}
