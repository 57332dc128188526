/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gid.h -- the GIDs of the device's port, which are the addresses of this host, as RoCE v2 has them.
 * Pure, but for gids_*, which read the interfaces.
 *
 * Programs have fixed indices in mind: 0 is NCCL's and Ceph's, 1 is usual for rxe, 3 for mlx5. So
 * the primary address has all of the first four. A row never changes once it is filled, because
 * programs keep indices; a further address gets the next row. The last row stays empty: programs
 * expect empty rows in a table of a RoCE device.
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
	unsigned n; /* rows that are filled, from the first on */
	struct gid_row rows[GID_ROWS];
};

/* IPv4 addresses are mapped (::ffff:192.0.2.1). */
union ibv_gid gid_of_addr(const struct link_addr *addr);
bool gid_is_possible(const struct link_addr *addr); /* it names one host */
/* scope: the interface of an address that is valid on one link only. */
struct link_addr gid_to_addr(const union ibv_gid *gid, uint32_t scope);
/*
 * The rows of a table that is empty: the primary address, then the others by their kind: IPv4,
 * IPv6, IPv6 of one link, loopback; in the given order within a kind. Of a table with rows: add
 * what it does not have. Addresses that name no host are left out. in_order: the kinds are not
 * looked at.
 */
void gid_table_fill(struct gid_table *t, const struct link_interface *primary,
		    const struct link_interface *list, unsigned n, bool in_order);

/* The device's table, as it is now. 0, -ENODATA: an empty row, or -EINVAL: there is no such row. */
int gids_get(unsigned index, struct gid_row *row);
/* From the address of the row sgid_index to the one that is dgid. 0; EINVAL: there is no such row;
 * or why there is no route, as an errno value. */
int gids_route(const struct ibv_global_route *grh, struct gid_row *own, struct link_addr *peer);
void gids_atfork_prepare(void);
void gids_atfork_release(void);

#endif
