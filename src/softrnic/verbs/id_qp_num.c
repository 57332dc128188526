/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/verbs/id_qp_num.h"

#include <errno.h>
#include <stdatomic.h>

#include "softrnic/verbs/qp_make.h"

#define NUM_FIRST 2u /* the numbers 0 and 1 are reserved in verbs */
#define NUM_COUNT (QP_NUM_PLAIN - NUM_FIRST)

static _Atomic(uint64_t) taken[QP_NUM_PLAIN / 64]; /* one bit for each number */
static atomic_uint next;

int id_qp_num_take(uint32_t *num)
{
	uint64_t bit;

	for (uint32_t i = 0; i < NUM_COUNT; i++) {
		*num = NUM_FIRST + atomic_fetch_add(&next, 1) % NUM_COUNT;
		bit = 1ull << *num % 64;
		if (!(atomic_fetch_or(&taken[*num / 64], bit) & bit))
			return 0;
	}
	return -ENOMEM;
}

void id_qp_num_give(uint32_t num)
{
	atomic_fetch_and(&taken[num / 64], ~(1ull << num % 64));
}
