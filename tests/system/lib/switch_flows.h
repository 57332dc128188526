/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch_flows.h -- determines the kind of mirror connection to which a frame belongs.
 *
 * All kinds use one port. The connecting end sends the kind in its first segment, an MPA request
 * whose private data are a greeting (mirror/wire/greeting.h).
 */
#ifndef SYSTEM_SWITCH_FLOWS_H
#define SYSTEM_SWITCH_FLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parse the TCP segment of a frame. Returns false if the frame has no TCP segment. */
struct segment {
	uint32_t addrs[2]; /* source and destination, in network byte order */
	uint16_t ports[2]; /* source and destination, in host byte order */
	bool begins;       /* SYN */
	const uint8_t *payload;
	size_t len;
};

bool segment_find(const uint8_t *frame, size_t len, struct segment *s);

/*
 * Returns an enum greeting_kind. 0: the connection is not a mirror's, or its kind is not known yet.
 * The caller has to pass each segment once, in order.
 */
unsigned flows_kind(const struct segment *s);

/* Returns the kind with this name ("control", "lane", ...), or 0 if the name is unknown. */
unsigned flows_kind_named(const char *name);

#endif
