/* SPDX-License-Identifier: BSD-3-Clause */
/* link_table.c -- the table of links. */
#include "softrnic/io/link_tcp.h"

/*
 * Each row must have the operations `connecting`. A link without them can only replace another
 * link.
 */
static const struct link_ops *const link_rows[] = {&link_tcp};

const struct link_ops *link_of(const struct link_addr *addr)
{
	const struct link_ops *found = NULL;
	int best = 0;

	for (size_t i = 0; i < sizeof(link_rows) / sizeof(link_rows[0]); i++) {
		int rank = link_rows[i]->connecting->serves(addr);

		if (rank <= best)
			continue;
		best = rank;
		found = link_rows[i];
	}
	return found;
}
