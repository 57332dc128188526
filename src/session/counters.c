/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/counters.h"

#include <inttypes.h>
#include <stdio.h>

#define COUNTERS_MAX 64

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
