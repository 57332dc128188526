/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture.h -- write a capture file (pcapng) of IPv4 connections, one after another. The bytes come
 * from real connections, but the packets are generated. So no privilege is needed, and the caller
 * decides where packets end.
 */
#ifndef DECODE_CAPTURE_H
#define DECODE_CAPTURE_H

#include <stdio.h>

#include "softrnic/trace/flow.h"

struct capture {
	FILE *file;
	struct flow flow; /* flow: the connection that began last; FLOW_US is its initiator */
	const uint8_t *bytes;
	uint64_t packets;
};

/* Returns 0 or -errno. */
int capture_open(struct capture *c, const char *path);
/* Begin a connection. The addresses are in host byte order. */
void capture_begin(struct capture *c, const uint32_t addr[2], const uint16_t port[2]);
/* Write one packet of at most TCPIP_PAYLOAD_MAX bytes. */
void capture_data(struct capture *c, enum flow_side from, const void *bytes, size_t len);
void capture_fin(struct capture *c, enum flow_side from);
/* Close the file. Returns 0, or -EIO if some packet could not be written. */
int capture_close(struct capture *c);

#endif
