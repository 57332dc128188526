/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gid.h -- the GIDs of the device's port: the addresses of this host, in the form of RoCE v2. Pure,
 * except gids_*, which read the interfaces.
 *
 * Programs use fixed indices: NCCL and Ceph use 0, users of rxe 1, users of mlx5 3. So the primary
 * address fills the first four rows. A filled row never changes, because programs keep indices; a
 * new address gets the next row. The last row stays empty: programs expect empty rows in a table of
 * a RoCE device.
 */
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "softrnic/io/link_interfaces.h"

#define GID_ROWS      16
#define GID_PRIMARIES 4

struct gid_row {
	union ibv_gid gid;
	struct link_addr addr;
	uint32_t ifindex; /* 0: unknown */
};

struct gid_table {
	unsigned n; /* number of filled rows, from the first row on */
	struct gid_row rows[GID_ROWS];
};

/* IPv4 addresses are mapped (::ffff:192.0.2.1). */
union ibv_gid gid_of_addr(const struct link_addr *addr);
bool gid_is_possible(const struct link_addr *addr); /* the address names one host */
/* scope: the interface, for an address that is valid on one link only. */
struct link_addr gid_to_addr(const union ibv_gid *gid, uint32_t scope);
/*
 * Fill an empty table: the primary address comes first, then the others by kind: IPv4, IPv6, IPv6
 * of one link, loopback; each kind in the given order. To a table with rows, append only new
 * addresses. Addresses that name no host are left out. in_order: ignore the kinds.
 */
void gid_table_fill(struct gid_table *t, const struct link_interface *primary,
		    const struct link_interface *list, unsigned n, bool in_order);

/* A row of the device's current table. Returns 0, -ENODATA for an empty row, or -EINVAL for an
 * index outside the table. */
int gids_get(unsigned index, struct gid_row *row);
/* Find a route from the address of row sgid_index to the address dgid. Returns 0, EINVAL for an
 * index outside the table, or the reason why there is no route, as an errno value. */
int gids_route(const struct ibv_global_route *grh, struct gid_row *own, struct link_addr *peer);
void gids_atfork_prepare(void);
void gids_atfork_release(void);

#endif
