/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/stall.h"

#include <stdlib.h>

struct stall_count *stall_count_new(void)
{
	struct stall_count *count = calloc(1, sizeof(*count));

	if (count)
		atomic_init(&count->refs, 1);
	return count;
}

struct stall_count *stall_count_get(struct stall_count *count)
{
	atomic_fetch_add(&count->refs, 1);
	return count;
}

void stall_count_put(struct stall_count *count)
{
	if (count && atomic_fetch_sub(&count->refs, 1) == 1)
		free(count);
}
