/* SPDX-License-Identifier: BSD-3-Clause */
/* gid_query.c -- queries of the port's tables of GIDs and partition keys. */
#include <errno.h>
#include <string.h>

#include "softrnic/io/config.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/gid.h"

#define PKEY_DEFAULT 0xffff /* the only partition key: full membership in the default partition */

/* Read a row of the table. If the device looks like RoCE, the table has the GIDs of RoCE. Otherwise
 * the table has the single GID of an iWARP port, which contains a hardware address; here it
 * contains the device's GUID. */
static int gid_row_of(struct ibv_context *context, unsigned index, struct gid_row *row)
{
	struct ibv_device_attr attr;
	int ret;

	if (config_get()->roce)
		return gids_get(index, row);
	ret = index == 0 ? -softrnic_query_device(context, &attr) : -EINVAL;
	memset(row, 0, sizeof(*row));
	if (!ret)
		memcpy(row->gid.raw, &attr.node_guid, sizeof(attr.node_guid));
	return ret;
}

int softrnic_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	struct gid_row row = {0};
	int ret = port == 1 && index >= 0 ? gid_row_of(context, (unsigned)index, &row) : -EINVAL;

	if (ret == -EINVAL) {
		errno = EINVAL;
		return -1;
	}
	*gid = row.gid; /* zeros if the row is empty */
	return 0;
}

static struct ibv_gid_entry gid_entry_of(const struct gid_row *row, uint32_t index)
{
	return (struct ibv_gid_entry){
		.gid = row->gid,
		.gid_index = index,
		.port_num = 1,
		.gid_type = config_get()->roce ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB,
		.ndev_ifindex = row->ifindex,
	};
}

int softrnic_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
			  struct ibv_gid_entry *entry, uint32_t flags)
{
	struct gid_row row;
	int ret = flags || port != 1 ? -EINVAL : gid_row_of(context, index, &row);

	if (!ret)
		*entry = gid_entry_of(&row, index);
	return -ret;
}

ssize_t softrnic_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				 size_t max, uint32_t flags)
{
	struct gid_row row;
	ssize_t n = 0;

	if (flags)
		return -EINVAL;
	for (unsigned i = 0; !gid_row_of(context, i, &row); i++) {
		if ((size_t)n == max)
			return -EINVAL; /* the port has more filled rows than `max` */
		entries[n++] = gid_entry_of(&row, i);
	}
	return n;
}

int softrnic_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(PKEY_DEFAULT);
	return 0;
}

int softrnic_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (port == 1 && pkey == htobe16(PKEY_DEFAULT))
		return 0;
	errno = EINVAL;
	return -1;
}
