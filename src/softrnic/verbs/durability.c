/* SPDX-License-Identifier: BSD-3-Clause */
/* durability.c -- the durability class of memory, registered or not. */
#include <errno.h>

#include "softrnic/persist/persist.h"
#include "softrnic/softrnic.h"

int softrnic_durability(const void *addr, size_t len, uint32_t *cls, char *why, size_t why_size)
{
	enum vext_durability found;
	int ret = len ? persist_classify(addr, len, &found, why, why_size) : -EINVAL;

	if (!ret)
		*cls = found;
	return -ret;
}
