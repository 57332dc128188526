/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/trace/flow.h"

#include <assert.h>

#include "base/cursor.h"

#define IPV4_LEN     20
#define IPV6_LEN     40
#define TCP_LEN      20
#define UDP_LEN      8
#define SYN_OPTIONS  8
#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17
#define HOPS         64
/* 65535 << 14 = 1 GiB with the scale of the SYN, so the window never looks full */
#define WINDOW 0xffff

/* Sum of a part of the bytes for the Internet checksum (RFC 1071). All parts except the last have
 * an even length. */
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

/* The fields of the IP header besides the addresses. */
struct ip_fields {
	uint8_t protocol, traffic_class, hop_limit;
	size_t below; /* number of bytes after the header */
};

static size_t tcpip_ip_len(bool v6)
{
	return v6 ? IPV6_LEN : IPV4_LEN;
}

static size_t tcpip_tcp_len(const struct tcpip_segment *seg)
{
	return TCP_LEN + (seg->flags & TCP_SYN ? SYN_OPTIONS : 0);
}

size_t tcpip_headers_len(const struct tcpip_segment *seg)
{
	return tcpip_ip_len(seg->v6) + tcpip_tcp_len(seg);
}

static void tcpip_encode_ipv4(uint8_t *ip, const struct tcpip_end *from, const struct tcpip_end *to,
			      const struct ip_fields *f)
{
	struct wcursor c = wcursor_init(ip, IPV4_LEN);

	wcursor_u8(&c, 0x45);
	wcursor_u8(&c, f->traffic_class);
	wcursor_be16(&c, (uint16_t)(IPV4_LEN + f->below));
	wcursor_be16(&c, 0);
	wcursor_be16(&c, f->protocol == PROTOCOL_TCP ? 0x4000 : 0); /* don't fragment */
	wcursor_u8(&c, f->hop_limit);
	wcursor_u8(&c, f->protocol);
	wcursor_be16(&c, 0);
	wcursor_bytes(&c, from->addr, 4);
	wcursor_bytes(&c, to->addr, 4);
	tcpip_store_be16(ip + 10, tcpip_fold(tcpip_sum(ip, IPV4_LEN)));
}

static void tcpip_encode_ipv6(uint8_t *ip, const struct tcpip_end *from, const struct tcpip_end *to,
			      const struct ip_fields *f)
{
	struct wcursor c = wcursor_init(ip, IPV6_LEN);

	wcursor_be32(&c, 0x60000000 | (uint32_t)f->traffic_class << 20);
	wcursor_be16(&c, (uint16_t)f->below);
	wcursor_u8(&c, f->protocol);
	wcursor_u8(&c, f->hop_limit);
	wcursor_bytes(&c, from->addr, 16);
	wcursor_bytes(&c, to->addr, 16);
}

static void tcpip_encode_ip(uint8_t *ip, bool v6, const struct tcpip_end *from,
			    const struct tcpip_end *to, const struct ip_fields *f)
{
	if (v6)
		tcpip_encode_ipv6(ip, from, to, f);
	else
		tcpip_encode_ipv4(ip, from, to, f);
}

/*
 * The checksums of TCP and UDP also cover addresses, protocol and length (RFC 9293 s3.1, RFC 768).
 */
static uint64_t tcpip_sum_pseudo_header(bool v6, const struct tcpip_end *from,
					const struct tcpip_end *to, const struct ip_fields *f)
{
	size_t addr = v6 ? 16 : 4;

	return tcpip_sum(from->addr, addr) + tcpip_sum(to->addr, addr) + f->protocol + f->below;
}

static void tcpip_encode_tcp(uint8_t *tcp, const struct tcpip_segment *seg)
{
	/* MSS (RFC 9293 s3.2), window scale (RFC 7323 s2.2), one no-op */
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
	uint8_t *tcp = headers + tcpip_ip_len(seg->v6);
	struct ip_fields f = {
		.protocol = PROTOCOL_TCP, .hop_limit = HOPS, .below = tcpip_tcp_len(seg) + len};

	assert(len <= TCPIP_PAYLOAD_MAX);
	tcpip_encode_ip(headers, seg->v6, seg->from, seg->to, &f);
	tcpip_encode_tcp(tcp, seg);
	tcpip_store_be16(tcp + 16,
			 tcpip_fold(tcpip_sum_pseudo_header(seg->v6, seg->from, seg->to, &f) +
				    tcpip_sum(tcp, tcpip_tcp_len(seg)) + tcpip_sum(payload, len)));
}

/* --- datagrams ------------------------------------------------------------------------------- */

size_t udpip_headers_len(const struct udpip_packet *p)
{
	return tcpip_ip_len(p->v6) + UDP_LEN;
}

void udpip_encode(uint8_t *headers, const struct udpip_packet *p, const void *payload, size_t len)
{
	uint8_t *udp = headers + tcpip_ip_len(p->v6);
	struct wcursor c = wcursor_init(udp, UDP_LEN);
	struct ip_fields f = {.protocol = PROTOCOL_UDP,
			      .traffic_class = p->traffic_class,
			      .hop_limit = p->hop_limit,
			      .below = UDP_LEN + len};
	uint16_t sum;

	assert(len <= TCPIP_PAYLOAD_MAX);
	tcpip_encode_ip(headers, p->v6, &p->from, &p->to, &f);
	wcursor_be16(&c, p->from.port);
	wcursor_be16(&c, p->to.port);
	wcursor_be16(&c, (uint16_t)f.below);
	wcursor_be16(&c, 0);
	sum = tcpip_fold(tcpip_sum_pseudo_header(p->v6, &p->from, &p->to, &f) +
			 tcpip_sum(udp, UDP_LEN) + tcpip_sum(payload, len));
	tcpip_store_be16(udp + 6, sum ? sum : 0xffff); /* 0 means that the packet has no checksum */
}
