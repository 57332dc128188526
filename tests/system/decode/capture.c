/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "softrnic/trace/pcapng.h"

int capture_open(struct capture *c, const char *path)
{
	uint8_t section[PCAPNG_SECTION_MAX];

	*c = (struct capture){.file = fopen(path, "wbe")};
	if (!c->file)
		return -errno;
	fwrite(section, 1, pcapng_encode_section(section, sizeof(section), "tests", "tests"),
	       c->file);
	return 0;
}

static void capture_emit(void *to, const struct tcpip_segment *seg, enum flow_side from, size_t len)
{
	uint8_t headers[TCPIP_HEADERS_MAX], head[PCAPNG_HEAD], tail[PCAPNG_TAIL_MAX];
	struct capture *c = to;
	size_t headers_len = tcpip_headers_len(seg);
	struct pcapng_packet packet = {
		.time_ns = c->packets++ * 1000,
		.captured = (uint32_t)(headers_len + len),
		.original = (uint32_t)(headers_len + len),
		.outbound = from == FLOW_US,
	};

	tcpip_encode(headers, seg, c->bytes, len);
	pcapng_encode_head(head, &packet);
	fwrite(head, 1, sizeof(head), c->file);
	fwrite(headers, 1, headers_len, c->file);
	if (len)
		fwrite(c->bytes, 1, len, c->file);
	fwrite(tail, 1, pcapng_encode_tail(tail, &packet), c->file);
}

void capture_begin(struct capture *c, const uint32_t addr[2], const uint16_t port[2])
{
	memset(&c->flow, 0, sizeof(c->flow));
	flow_init(&c->flow, 0);
	for (int side = 0; side < 2; side++) {
		uint32_t be = htobe32(addr[side]);

		memcpy(c->flow.end[side].addr, &be, sizeof(be));
		c->flow.end[side].port = port[side];
	}
	flow_open(&c->flow, FLOW_US, capture_emit, c);
}

void capture_data(struct capture *c, enum flow_side from, const void *bytes, size_t len)
{
	c->bytes = bytes;
	flow_data(&c->flow, from, len, capture_emit, c);
}

void capture_fin(struct capture *c, enum flow_side from)
{
	flow_fin(&c->flow, from, capture_emit, c);
}

int capture_close(struct capture *c)
{
	int failed = ferror(c->file);

	return fclose(c->file) || failed ? -EIO : 0;
}
