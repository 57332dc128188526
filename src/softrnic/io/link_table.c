/* SPDX-License-Identifier: BSD-3-Clause */
/* link_table.c -- the table of links. */
#include <pthread.h>

#include "base/log.h"
#include "softrnic/io/link_tcp.h"

static const struct link_ops *const link_rows[] = {&link_tcp};
enum { LINK_ROWS = sizeof(link_rows) / sizeof(link_rows[0]) };

static bool link_is_usable[LINK_ROWS];

/* Once: a row that lacks an operation is left out, as a call of it would end the process. */
static void link_table_check(void)
{
	for (size_t i = 0; i < LINK_ROWS; i++) {
		const char *lacks =
			link_rows[i]->connecting ? link_lacks(link_rows[i]) : "connecting";

		link_is_usable[i] = !lacks;
		if (lacks)
			LOG_ERROR("link %s is not used: its table has no %s (link.h)",
				  link_rows[i]->name, lacks);
	}
}

const struct link_ops *link_of(const struct link_addr *addr)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const struct link_ops *found = NULL;
	int best = 0;

	pthread_once(&once, link_table_check);
	for (size_t i = 0; i < LINK_ROWS; i++) {
		int rank = link_is_usable[i] ? link_rows[i]->connecting->serves(addr) : 0;

		if (rank <= best)
			continue;
		best = rank;
		found = link_rows[i];
	}
	return found;
}
