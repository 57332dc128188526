/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch_flows.h -- the kind of mirror connection that a frame belongs to.
 *
 * All kinds use one port. The connecting end sends the kind in its first segment: an MPA request
 * whose private data is a greeting (mirror/wire/greeting.h).
 */
#ifndef SYSTEM_SWITCH_FLOWS_H
#define SYSTEM_SWITCH_FLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The TCP segment of a frame. False: the frame has no segment. */
struct segment {
	uint32_t addrs[2]; /* source and destination; as in the frame */
	uint16_t ports[2]; /* source and destination; as numbers */
	bool begins;       /* SYN */
	const uint8_t *payload;
	size_t len;
};

bool segment_find(const uint8_t *frame, size_t len, struct segment *s);

/*
 * Returns an enum greeting_kind, or 0: not a mirror's connection, or not known yet. The caller has
 * to pass each segment once, in order.
 */
unsigned flows_kind(const struct segment *s);

/* The kind with that name: "control", "lane", ...; 0: no kind has the name. */
unsigned flows_kind_named(const char *name);

#endif
