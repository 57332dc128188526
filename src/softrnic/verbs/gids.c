/* SPDX-License-Identifier: BSD-3-Clause */
/* gids.c -- the device's table of GIDs: made at its first use, and extended later. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/softrnic.h"
#include "softrnic/verbs/gid.h"

_Static_assert(GID_ROWS == SOFTRNIC_GIDS_MAX, "callers have room for all rows");

#define GIDS_LIST 64
/* the table is read again after this time, so a new address of the host appears in it within this
 * time */
#define GIDS_FRESH_NS NSEC_PER_SEC

static struct {
	pthread_mutex_t lock;
	struct gid_table table;
	uint64_t read_at; /* time of the last reading; 0: not read yet */
	bool given;       /* SOFTRNIC_GIDS lists the addresses, so interfaces are not read */
} gids = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Destinations for finding the default route's source addresses. They are addresses for
 * documentation (RFC 5737, RFC 3849). No packet is sent to them. */
static const struct link_addr gids_far[] = {
	{.family = LINK_IPV4, .bytes = {192, 0, 2, 1}},
	{.family = LINK_IPV6, .bytes = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}},
};

/* Choose the primary address, which fills the first rows: one that peers can reach, if the host has
 * one. */
static struct link_interface gids_choose_primary(const struct link_interface *list, unsigned n)
{
	static const struct link_addr none;
	struct link_interface loopback = {{.family = LINK_IPV4, .bytes = {127, 0, 0, 1}}, 0};
	struct gid_table by_kind = {0};
	struct link_addr source;

	for (size_t i = 0; i < sizeof(gids_far) / sizeof(gids_far[0]); i++) {
		const struct link_interface *found =
			link_route(&none, &gids_far[i], &source)
				? NULL
				: link_interfaces_find(list, n, &source);

		if (found)
			return *found;
	}
	by_kind.n = 1; /* leave the first row empty */
	gid_table_fill(&by_kind, NULL, list, n, false);
	if (by_kind.n > 1)
		return (struct link_interface){by_kind.rows[1].addr, by_kind.rows[1].ifindex};
	return loopback;
}

static void gids_read_interfaces_locked(void)
{
	struct link_interface list[GIDS_LIST], primary = {0};
	unsigned n = link_interfaces(list, GIDS_LIST);

	if (!gids.table.n)
		primary = gids_choose_primary(list, n);
	gid_table_fill(&gids.table, &primary, list, n, false);
}

/* The user listed the addresses, so the table contains no other addresses. Returns false if the
 * list is unusable. */
static bool gids_read_given_locked(void)
{
	struct link_interface list[GID_ROWS];
	const char *given = config_get()->gids;
	unsigned n = given ? link_interfaces_parse(given, list, GID_ROWS) : 0;

	for (unsigned i = 0; i < n; i++) {
		if (!gid_is_possible(&list[i].addr))
			n = 0;
	}
	if (given && !n)
		LOG_WARNING("SOFTRNIC_GIDS=%s ignored: expected IP addresses between commas",
			    given);
	if (n)
		gid_table_fill(&gids.table, &list[0], list, n, true);
	return n > 0;
}

static void gids_refresh_locked(void)
{
	uint64_t now = clock_now_ns();

	if (!gids.read_at)
		gids.given = gids_read_given_locked();
	if (gids.read_at && (gids.given || now - gids.read_at < GIDS_FRESH_NS))
		return;
	if (!gids.given)
		gids_read_interfaces_locked();
	gids.read_at = now;
}

int gids_get(unsigned index, struct gid_row *row)
{
	int ret = 0;

	if (index >= GID_ROWS)
		return -EINVAL;
	pthread_mutex_lock(&gids.lock);
	gids_refresh_locked();
	if (index < gids.table.n)
		*row = gids.table.rows[index];
	else
		ret = -ENODATA;
	pthread_mutex_unlock(&gids.lock);
	return ret;
}

int gids_find(const union ibv_gid *gid)
{
	int found = -1;

	pthread_mutex_lock(&gids.lock);
	gids_refresh_locked();
	for (unsigned i = 0; i < gids.table.n && found < 0; i++)
		if (!memcmp(&gids.table.rows[i].gid, gid, sizeof(*gid)))
			found = (int)i;
	pthread_mutex_unlock(&gids.lock);
	return found;
}

int gids_route(const struct ibv_global_route *grh, struct gid_row *own, struct link_addr *peer)
{
	int ret;

	if (gids_get(grh->sgid_index, own)) {
		LOG_WARNING_LIMITED("row %u of the GID table is empty: use the index of another "
				    "row (ibv_devinfo -v)",
				    grh->sgid_index);
		return EINVAL;
	}
	*peer = gid_to_addr(&grh->dgid, own->ifindex);
	ret = link_route(&own->addr, peer, NULL);
	if (ret && own->addr.family != peer->family)
		LOG_WARNING_LIMITED("GID index %u and the peer's GID are not both of IPv4 or both "
				    "of IPv6: use the index of another row (ibv_devinfo -v)",
				    grh->sgid_index);
	else if (ret)
		LOG_WARNING_LIMITED("no route from GID index %u to the peer's GID: %s",
				    grh->sgid_index, strerror(-ret));
	return -ret;
}

void gids_atfork_prepare(void)
{
	pthread_mutex_lock(&gids.lock);
}

void gids_atfork_release(void)
{
	pthread_mutex_unlock(&gids.lock);
}
