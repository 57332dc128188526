/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture.h -- a capture file (pcapng) of IPv4 connections, one after another: real bytes in
 * generated packets. That needs no privilege, and the caller decides where packets end.
 */
#ifndef DECODE_CAPTURE_H
#define DECODE_CAPTURE_H

#include <stdio.h>

#include "softrnic/trace/flow.h"

struct capture {
	FILE *file;
	struct flow flow; /* flow of the last connection that began; FLOW_US is its initiator */
	const uint8_t *bytes;
	uint64_t packets;
};

/* Returns 0 or -errno. */
int capture_open(struct capture *c, const char *path);
/* Addresses in host order. */
void capture_begin(struct capture *c, const uint32_t addr[2], const uint16_t port[2]);
/* Write one packet: at most TCPIP_PAYLOAD_MAX bytes. */
void capture_data(struct capture *c, enum flow_side from, const void *bytes, size_t len);
void capture_fin(struct capture *c, enum flow_side from);
/* Returns 0, or -EIO if not all packets could be written. */
int capture_close(struct capture *c);

#endif
