/* SPDX-License-Identifier: BSD-3-Clause */
/* durability.c -- reports the durability class of memory of this process. */
#include "rpma/err.h"
#include "rpma/utils.h"

int rpma_utils_get_durability(const void *ptr, size_t len, enum rpma_durability *durability,
			      char *why, size_t why_size)
{
	char unread[UTILS_WHY_LEN];
	uint32_t cls;
	int err;

	if (!ptr || !len || (uintptr_t)ptr + len < (uintptr_t)ptr || !durability ||
	    (why && !why_size))
		return INVALID();
	err = provider_durability(ptr, len, &cls, why ? why : unread,
				  why ? why_size : sizeof(unread));
	if (!err) {
		*durability = (enum rpma_durability)cls;
		return 0;
	}
	LOG_ERROR("the durability of %zu bytes at %p cannot be found out: %s", len, ptr,
		  strerror(err));
	if (err == ENOMEM)
		return NOMEM();
	return err == EFAULT || err == EINVAL ? RPMA_E_INVAL : RPMA_E_UNKNOWN;
}
