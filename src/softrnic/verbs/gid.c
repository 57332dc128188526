/* SPDX-License-Identifier: BSD-3-Clause */
/* gid.c -- converts addresses to GIDs, and fills the rows of the GID table. Pure. */
#include "softrnic/verbs/gid.h"

#include <string.h>

/* The kinds of GIDs, in the order of their rows. */
enum gid_kind { GID_IPV4, GID_IPV6, GID_IPV6_LINK, GID_LOOPBACK4, GID_LOOPBACK6, GID_KINDS };

union ibv_gid gid_of_addr(const struct link_addr *addr)
{
	union ibv_gid gid;

	link_addr_to_gid(addr, gid.raw);
	return gid;
}

static bool gid_is_of_link(const uint8_t *ipv6)
{
	return ipv6[0] == 0xfe && (ipv6[1] & 0xc0) == 0x80;
}

struct link_addr gid_to_addr(const union ibv_gid *gid, uint32_t scope)
{
	struct link_addr addr = {.family = LINK_IPV6}, ipv4 = {.family = LINK_IPV4};

	memcpy(addr.bytes, gid->raw, sizeof(gid->raw));
	if (link_addr_is_mapped(&addr)) {
		memcpy(ipv4.bytes, gid->raw + 12, 4);
		return ipv4;
	}
	addr.scope = gid_is_of_link(gid->raw) ? scope : 0;
	return addr;
}

/* Returns the kind of an address, or GID_KINDS if the address names no host, or more than one. */
static enum gid_kind gid_kind_of(const struct link_addr *addr)
{
	static const uint8_t zero[15];
	const uint8_t *b = addr->bytes;

	if (addr->family == LINK_IPV4) {
		if (b[0] == 127)
			return GID_LOOPBACK4;
		return b[0] == 0 || b[0] >= 224 ? GID_KINDS : GID_IPV4;
	}
	if (addr->family != LINK_IPV6 || b[0] == 0xff || link_addr_is_mapped(addr))
		return GID_KINDS;
	if (!memcmp(b, zero, sizeof(zero)))
		return b[15] == 1 ? GID_LOOPBACK6 : GID_KINDS;
	return gid_is_of_link(b) ? GID_IPV6_LINK : GID_IPV6;
}

bool gid_is_possible(const struct link_addr *addr)
{
	return gid_kind_of(addr) != GID_KINDS;
}

static void gid_add(struct gid_table *t, const struct link_interface *from)
{
	struct gid_row *row = &t->rows[t->n];

	if (t->n == GID_ROWS - 1)
		return;
	row->gid = gid_of_addr(&from->addr);
	row->addr = from->addr;
	row->addr.port = 0;
	row->ifindex = from->index;
	t->n++;
}

/* Is the address already in the table? Several interfaces may have the same link-local address, so
 * the interface is compared, too. */
static bool gid_is_there(const struct gid_table *t, const struct link_interface *from)
{
	union ibv_gid gid = gid_of_addr(&from->addr);

	for (unsigned i = 0; i < t->n; i++) {
		if (!memcmp(&t->rows[i].gid, &gid, sizeof(gid)) &&
		    t->rows[i].addr.scope == from->addr.scope)
			return true;
	}
	return false;
}

static void gid_add_kind(struct gid_table *t, const struct link_interface *list, unsigned n,
			 int kind)
{
	for (unsigned i = 0; i < n; i++) {
		int its = (int)gid_kind_of(&list[i].addr);

		if (gid_is_possible(&list[i].addr) && (kind == GID_KINDS || its == kind) &&
		    !gid_is_there(t, &list[i]))
			gid_add(t, &list[i]);
	}
}

void gid_table_fill(struct gid_table *t, const struct link_interface *primary,
		    const struct link_interface *list, unsigned n, bool in_order)
{
	if (t->n == 0) {
		for (int i = 0; i < GID_PRIMARIES; i++)
			gid_add(t, primary);
	}
	if (in_order)
		gid_add_kind(t, list, n, GID_KINDS);
	else
		for (int kind = 0; kind < GID_KINDS; kind++)
			gid_add_kind(t, list, n, kind);
}
