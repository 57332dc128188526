/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/trace/flow.h"

#include <assert.h>

#include "base/cursor.h"

#define IPV4_LEN     20
#define IPV6_LEN     40
#define TCP_LEN      20
#define SYN_OPTIONS  8
#define PROTOCOL_TCP 6
#define HOPS         64
#define WINDOW       0xffff /* a GiB after scaling, so that it never looks full */

/* The Internet checksum (RFC 1071), in parts: all but the last have an even length. */
static uint64_t tcpip_sum(const uint8_t *p, size_t len)
{
	uint64_t sum = 0;

	for (; len >= 2; p += 2, len -= 2)
		sum += (uint64_t)p[0] << 8 | p[1];
	return len ? sum + ((uint64_t)p[0] << 8) : sum;
}

static uint16_t tcpip_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void tcpip_store_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static size_t tcpip_ip_len(const struct tcpip_segment *seg)
{
	return seg->v6 ? IPV6_LEN : IPV4_LEN;
}

static size_t tcpip_tcp_len(const struct tcpip_segment *seg)
{
	return TCP_LEN + (seg->flags & TCP_SYN ? SYN_OPTIONS : 0);
}

size_t tcpip_headers_len(const struct tcpip_segment *seg)
{
	return tcpip_ip_len(seg) + tcpip_tcp_len(seg);
}

static void tcpip_encode_ipv4(uint8_t *ip, const struct tcpip_segment *seg, size_t below)
{
	struct wcursor c = wcursor_init(ip, IPV4_LEN);

	wcursor_be16(&c, 0x4500);
	wcursor_be16(&c, (uint16_t)(IPV4_LEN + below));
	wcursor_be16(&c, 0);
	wcursor_be16(&c, 0x4000); /* don't fragment */
	wcursor_u8(&c, HOPS);
	wcursor_u8(&c, PROTOCOL_TCP);
	wcursor_be16(&c, 0);
	wcursor_bytes(&c, seg->from->addr, 4);
	wcursor_bytes(&c, seg->to->addr, 4);
	tcpip_store_be16(ip + 10, tcpip_fold(tcpip_sum(ip, IPV4_LEN)));
}

static void tcpip_encode_ipv6(uint8_t *ip, const struct tcpip_segment *seg, size_t below)
{
	struct wcursor c = wcursor_init(ip, IPV6_LEN);

	wcursor_be32(&c, 0x60000000);
	wcursor_be16(&c, (uint16_t)below);
	wcursor_u8(&c, PROTOCOL_TCP);
	wcursor_u8(&c, HOPS);
	wcursor_bytes(&c, seg->from->addr, 16);
	wcursor_bytes(&c, seg->to->addr, 16);
}

/* TCP's checksum covers addresses, protocol and length, too (RFC 9293 s3.1). */
static uint64_t tcpip_sum_pseudo_header(const struct tcpip_segment *seg, size_t below)
{
	size_t addr = seg->v6 ? 16 : 4;

	return tcpip_sum(seg->from->addr, addr) + tcpip_sum(seg->to->addr, addr) + PROTOCOL_TCP +
	       below;
}

static void tcpip_encode_tcp(uint8_t *tcp, const struct tcpip_segment *seg)
{
	/* RFC 9293 s3.2; RFC 7323 s2.2; a no-op */
	static const uint8_t options[SYN_OPTIONS] = {
		2, 4, TCPIP_PAYLOAD_MAX >> 8, TCPIP_PAYLOAD_MAX & 0xff, 3, 3, 14, 1};
	struct wcursor c = wcursor_init(tcp, tcpip_tcp_len(seg));

	wcursor_be16(&c, seg->from->port);
	wcursor_be16(&c, seg->to->port);
	wcursor_be32(&c, seg->seq);
	wcursor_be32(&c, seg->flags & TCP_ACK ? seg->ack : 0);
	wcursor_u8(&c, (uint8_t)(tcpip_tcp_len(seg) / 4 << 4));
	wcursor_u8(&c, seg->flags);
	wcursor_be16(&c, WINDOW);
	wcursor_be32(&c, 0);
	if (seg->flags & TCP_SYN)
		wcursor_bytes(&c, options, sizeof(options));
	assert(!c.bad);
}

void tcpip_encode(uint8_t *headers, const struct tcpip_segment *seg, const void *payload,
		  size_t len)
{
	uint8_t *tcp = headers + tcpip_ip_len(seg);
	size_t below = tcpip_tcp_len(seg) + len;

	assert(len <= TCPIP_PAYLOAD_MAX);
	if (seg->v6)
		tcpip_encode_ipv6(headers, seg, below);
	else
		tcpip_encode_ipv4(headers, seg, below);
	tcpip_encode_tcp(tcp, seg);
	tcpip_store_be16(tcp + 16,
			 tcpip_fold(tcpip_sum_pseudo_header(seg, below) +
				    tcpip_sum(tcp, tcpip_tcp_len(seg)) + tcpip_sum(payload, len)));
}
