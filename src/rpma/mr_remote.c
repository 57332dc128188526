/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_remote.c -- a region of the other end, made from the descriptor that the other end sent. */
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rpma/err.h"
#include "rpma/mr.h"

int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
				   struct rpma_mr_remote **mr_ptr)
{
	const uint8_t *in = desc;
	struct rpma_mr_remote *mr;
	uint64_t addr, size;
	uint32_t rkey;

	if (!desc || !mr_ptr)
		return INVALID();
	if (desc_size < MR_DESC_SIZE) {
		LOG_ERROR("the memory region's descriptor has %zu bytes, less than %d", desc_size,
			  MR_DESC_SIZE);
		return RPMA_E_INVAL;
	}
	if (!in[20]) {
		LOG_ERROR("the memory region's descriptor names no usage");
		return RPMA_E_INVAL;
	}
	mr = malloc(sizeof(*mr));
	if (!mr)
		return NOMEM();
	memcpy(&addr, in, sizeof(addr));
	memcpy(&size, in + 8, sizeof(size));
	memcpy(&rkey, in + 16, sizeof(rkey));
	*mr = (struct rpma_mr_remote){.raddr = le64toh(addr),
				      .size = le64toh(size),
				      .rkey = le32toh(rkey),
				      .usage = in[20]};
	LOG_DEBUG("remote region: raddr=0x%" PRIx64 ", size=%" PRIu64 ", rkey=0x%x, usage=0x%x",
		  mr->raddr, mr->size, mr->rkey, (unsigned int)mr->usage);
	*mr_ptr = mr;
	return 0;
}

int rpma_mr_remote_delete(struct rpma_mr_remote **mr_ptr)
{
	if (!mr_ptr)
		return INVALID();
	free(*mr_ptr);
	*mr_ptr = NULL;
	return 0;
}

int rpma_mr_remote_get_size(const struct rpma_mr_remote *mr, size_t *size)
{
	if (!mr || !size)
		return INVALID();
	*size = mr->size;
	return 0;
}

int rpma_mr_remote_get_flush_type(const struct rpma_mr_remote *mr, int *flush_type)
{
	if (!mr || !flush_type)
		return INVALID();
	*flush_type = mr->usage & MR_USAGE_FLUSH;
	return 0;
}
