/* SPDX-License-Identifier: BSD-3-Clause */
/* packet_impl.h -- declarations that only the packet*.c files share. */
#ifndef MIRROR_WIRE_PACKET_IMPL_H
#define MIRROR_WIRE_PACKET_IMPL_H

#include "base/cursor.h"
#include "mirror/wire/packet.h"

/* Returns true if the packet has the fields that version 2 has added. */
static inline bool packet_has_findings(const struct packet *p)
{
	return p->versions.newest >= VERSION_FINDINGS;
}

/* packet_report.c: encodes the bodies of STATUS, EVENT, ORDER and ORDERED. */
void packet_put_report(struct wcursor *c, const struct packet *p);
void packet_get_report(struct rcursor *c, struct packet *p);
void packet_put_event(struct wcursor *c, const struct packet *p);
void packet_get_event(struct rcursor *c, struct packet *p);
void packet_put_order(struct wcursor *c, const struct packet *p);
void packet_get_order(struct rcursor *c, struct packet *p);
void packet_put_ordered(struct wcursor *c, const struct packet *p);
void packet_get_ordered(struct rcursor *c, struct packet *p);

#endif
