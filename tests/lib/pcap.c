/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/pcap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"

#define MAGIC_LE   0xa1b2c3d4u
#define ETHERNET   1u
#define FILE_HDR   24
#define RECORD_HDR 16
#define IPV4       0x0800
#define TCP        6
#define TCP_FIN    0x01
#define TCP_SYN    0x02
#define TCP_ACK    0x10
#define STREAM_MAX (16u << 20)

struct segment {
	struct pcap_endpoint src, dst;
	uint32_t seq;
	uint8_t flags;
	const uint8_t *data;
	size_t len;
};

static uint32_t pcap_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Parse a frame of Ethernet, IPv4 and TCP. Returns false for any other frame. The IP length
 * excludes the padding of the frame. */
static bool pcap_parse_frame(const uint8_t *frame, size_t len, struct segment *seg)
{
	struct rcursor c = rcursor_init(frame, len);
	size_t ip_hdr, ip_len, tcp_hdr;

	rcursor_bytes(&c, 12);
	if (rcursor_be16(&c) != IPV4)
		return false;
	ip_hdr = (rcursor_u8(&c) & 0xfu) * 4;
	rcursor_u8(&c);
	ip_len = rcursor_be16(&c);
	rcursor_bytes(&c, 5);
	if (rcursor_u8(&c) != TCP)
		return false;
	rcursor_be16(&c);
	seg->src.addr = rcursor_be32(&c);
	seg->dst.addr = rcursor_be32(&c);
	rcursor_bytes(&c, ip_hdr - 20);
	seg->src.port = rcursor_be16(&c);
	seg->dst.port = rcursor_be16(&c);
	seg->seq = rcursor_be32(&c);
	rcursor_be32(&c);
	tcp_hdr = (rcursor_u8(&c) >> 4) * 4u;
	seg->flags = rcursor_u8(&c);
	rcursor_bytes(&c, tcp_hdr - 14);
	if (ip_hdr < 20 || tcp_hdr < 20 || ip_len < ip_hdr + tcp_hdr)
		return false;
	seg->len = ip_len - ip_hdr - tcp_hdr;
	seg->data = rcursor_bytes(&c, seg->len);
	return !c.bad;
}

static bool pcap_is_endpoint(const struct pcap_endpoint *a, const struct pcap_endpoint *b)
{
	return a->addr == b->addr && a->port == b->port;
}

static struct pcap_stream *pcap_stream_of(struct pcap *pcap, const struct segment *seg)
{
	for (unsigned i = 0; i < pcap->n; i++) {
		struct pcap_stream *s = pcap->conn[i].stream;

		if (pcap_is_endpoint(&s[0].from, &seg->src) &&
		    pcap_is_endpoint(&s[1].from, &seg->dst))
			return &s[0];
		if (pcap_is_endpoint(&s[1].from, &seg->src) &&
		    pcap_is_endpoint(&s[0].from, &seg->dst))
			return &s[1];
	}
	if (seg->flags & TCP_ACK || !(seg->flags & TCP_SYN) || pcap->n == PCAP_CONNS_MAX)
		return NULL;
	pcap->conn[pcap->n].stream[0].from = seg->src;
	pcap->conn[pcap->n].stream[1].from = seg->dst;
	return &pcap->conn[pcap->n++].stream[0];
}

static int pcap_place(struct pcap_stream *s, const struct segment *seg)
{
	uint32_t at = seg->seq - s->isn - 1;

	if (at > STREAM_MAX || seg->len > STREAM_MAX - at)
		return -EPROTO;
	if (at + seg->len > s->size) {
		size_t size = 2 * (at + seg->len);

		s->data = realloc(s->data, size);
		s->seen = realloc(s->seen, size * sizeof(*s->seen));
		if (!s->data || !s->seen)
			return -ENOMEM;
		memset(s->seen + s->size, 0, (size - s->size) * sizeof(*s->seen));
		s->size = size;
	}
	memcpy(s->data + at, seg->data, seg->len);
	for (size_t i = 0; i < seg->len; i++)
		s->seen[at + i] = true;
	return 0;
}

static int pcap_on_segment(struct pcap *pcap, const struct segment *seg)
{
	struct pcap_stream *s = pcap_stream_of(pcap, seg);

	if (!s)
		return 0;
	if (seg->flags & TCP_SYN)
		s->isn = seg->seq;
	if (seg->flags & TCP_FIN)
		s->fin = true;
	return seg->len ? pcap_place(s, seg) : 0;
}

static void pcap_count_contiguous(struct pcap *pcap)
{
	for (unsigned i = 0; i < pcap->n; i++)
		for (int side = 0; side < 2; side++) {
			struct pcap_stream *s = &pcap->conn[i].stream[side];

			while (s->len < s->size && s->seen[s->len])
				s->len++;
		}
}

static int pcap_read_records(struct pcap *pcap, FILE *f)
{
	uint8_t hdr[RECORD_HDR];
	struct segment seg;
	int err = 0;

	while (!err && fread(hdr, sizeof(hdr), 1, f) == 1) {
		uint32_t len = pcap_le32(hdr + 8);
		uint8_t *frame;

		if (len > STREAM_MAX)
			return -EPROTO;
		frame = malloc(len + 1);
		if (!frame)
			return -ENOMEM;
		if (fread(frame, 1, len, f) != len)
			err = -EPROTO;
		else if (pcap_parse_frame(frame, len, &seg))
			err = pcap_on_segment(pcap, &seg);
		free(frame);
	}
	return err;
}

int pcap_load(struct pcap *pcap, const char *path)
{
	uint8_t hdr[FILE_HDR];
	FILE *f = fopen(path, "rb");
	int err = -EPROTO;

	*pcap = (struct pcap){0};
	if (!f)
		return -errno;
	if (fread(hdr, sizeof(hdr), 1, f) == 1 && pcap_le32(hdr) == MAGIC_LE &&
	    pcap_le32(hdr + 20) == ETHERNET)
		err = pcap_read_records(pcap, f);
	fclose(f);
	if (err)
		pcap_fini(pcap);
	else
		pcap_count_contiguous(pcap);
	return err;
}

void pcap_fini(struct pcap *pcap)
{
	for (unsigned i = 0; i < pcap->n; i++)
		for (int side = 0; side < 2; side++) {
			free(pcap->conn[i].stream[side].data);
			free(pcap->conn[i].stream[side].seen);
		}
	*pcap = (struct pcap){0};
}

const struct pcap_conn *pcap_find(const struct pcap *pcap, uint16_t port)
{
	for (unsigned i = 0; i < pcap->n; i++)
		if (pcap->conn[i].stream[1].from.port == port)
			return &pcap->conn[i];
	return NULL;
}
