/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gid.h -- the GIDs of the device's port, which are the addresses of this host in the form of RoCE
 * v2. The functions are pure, except gids_*(), which read the interfaces.
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
	uint32_t ifindex; /* interface of the address; 0: unknown */
};

struct gid_table {
	unsigned n; /* number of filled rows, which are the first rows */
	struct gid_row rows[GID_ROWS];
};

/* Convert an address to a GID. IPv4 addresses are mapped (::ffff:192.0.2.1). */
union ibv_gid gid_of_addr(const struct link_addr *addr);
bool gid_is_possible(const struct link_addr *addr); /* does the address name exactly one host? */
/* Convert a GID to an address. For an address that is valid on one link only, `scope` is the
 * interface. */
struct link_addr gid_to_addr(const union ibv_gid *gid, uint32_t scope);
/*
 * Fill a table. An empty table gets the primary address first, and then the other addresses by
 * kind: IPv4, IPv6, link-local IPv6, loopback. Within a kind the order of `list` is kept. If the
 * table has rows already, only new addresses are appended. Addresses that do not name exactly one
 * host are left out. If `in_order`, the kinds are ignored.
 */
void gid_table_fill(struct gid_table *t, const struct link_interface *primary,
		    const struct link_interface *list, unsigned n, bool in_order);

/* Read a row of the device's current table. Returns 0, -ENODATA for an empty row, or -EINVAL for an
 * index outside of the table. */
int gids_get(unsigned index, struct gid_row *row);
/* Returns the index of the row with this GID, or -1. */
int gids_find(const union ibv_gid *gid);
/* Find a route from the address of row grh->sgid_index to the address grh->dgid. Returns 0, EINVAL
 * for an index outside of the table, or an errno value that explains why there is no route. */
int gids_route(const struct ibv_global_route *grh, struct gid_row *own, struct link_addr *peer);
void gids_atfork_prepare(void);
void gids_atfork_release(void);

#endif
