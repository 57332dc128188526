/* SPDX-License-Identifier: BSD-3-Clause */
/* gid.c -- calls for the table of GIDs that are not in the tables of calls. */
#include <errno.h>
#include <string.h>

#include "interposer/ops.h"
#include "softrnic/softrnic.h"

/* Copy only as many bytes as the caller's entry has. A program may have been built with a shorter
 * entry. */
static void gid_copy_entry(void *to, const struct ibv_gid_entry *entry, size_t size)
{
	memcpy(to, entry, size < sizeof(*entry) ? size : sizeof(*entry));
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	OPS_SCOPE ops = ops_of(ctx);
	__typeof__(_ibv_query_gid_ex) *found;
	struct ibv_gid_entry full;
	int err;

	if (ops->is_rdma_core) {
		found = (__typeof__(found))rdma_core_symbol("_ibv_query_gid_ex");
		return found ? found(ctx, port, index, entry, flags, size) : EOPNOTSUPP;
	}
	err = softrnic_query_gid_ex(ctx, port, index, &full, flags);
	if (!err)
		gid_copy_entry(entry, &full, size);
	return err;
}

static ssize_t gid_copy_table(struct ibv_context *ctx, void *entries, size_t max, uint32_t flags,
			      size_t size)
{
	struct ibv_gid_entry full[SOFTRNIC_GIDS_MAX];
	ssize_t n = softrnic_query_gid_table(
		ctx, full, max < SOFTRNIC_GIDS_MAX ? max : SOFTRNIC_GIDS_MAX, flags);

	for (ssize_t i = 0; i < n; i++)
		gid_copy_entry((char *)entries + (size_t)i * size, &full[i], size);
	return n;
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max,
			     uint32_t flags, size_t size)
{
	OPS_SCOPE ops = ops_of(ctx);
	__typeof__(_ibv_query_gid_table) *found;

	if (!ops->is_rdma_core)
		return gid_copy_table(ctx, entries, max, flags, size);
	found = (__typeof__(found))rdma_core_symbol("_ibv_query_gid_table");
	return found ? found(ctx, entries, max, flags, size) : -EOPNOTSUPP;
}

/*
 * The kind of a GID, as in the kernel's file. libibverbs only offers this call to rdma-core's own
 * programs.
 */
enum ibv_gid_type_sysfs { GID_TYPE_IB_OR_ROCE_V1, GID_TYPE_ROCE_V2 };
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index,
		       enum ibv_gid_type_sysfs *type);
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index,
		       enum ibv_gid_type_sysfs *type)
{
	OPS_SCOPE ops = ops_of(ctx);
	__typeof__(ibv_query_gid_type) *found;
	struct ibv_gid_entry entry;
	int err;

	if (ops->is_rdma_core) {
		found = (__typeof__(found))rdma_core_symbol("ibv_query_gid_type");
		return found ? found(ctx, port, index, type) : REFUSE_NEG(EOPNOTSUPP);
	}
	err = softrnic_query_gid_ex(ctx, port, index, &entry, 0);
	if (err)
		return REFUSE_NEG(err == ENODATA ? EINVAL : err);
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? GID_TYPE_ROCE_V2 : GID_TYPE_IB_OR_ROCE_V1;
	return 0;
}
