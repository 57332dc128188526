/* SPDX-License-Identifier: BSD-3-Clause */
/* link_table.c -- the table of links. */
#include "softrnic/io/link.h"

/* Made by the linker, of all LINK_ROW()s of the program or library. */
extern const struct link_ops *const __start_softrnic_links[] __attribute__((visibility("hidden")));
extern const struct link_ops *const __stop_softrnic_links[] __attribute__((visibility("hidden")));

const struct link_ops *link_of(const struct link_addr *addr)
{
	const struct link_ops *const *row, *found = NULL;
	int best = 0;

	for (row = __start_softrnic_links; row < __stop_softrnic_links; row++) {
		int rank = (*row)->serves(addr);

		if (rank <= best)
			continue;
		best = rank;
		found = *row;
	}
	return found;
}
