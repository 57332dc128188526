/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recut IN.pcap OUT.pcapng -- the TCP connections of a real capture, with a packet for each frame
 * of MPA. TCP may cut a stream wherever it likes, and Wireshark loses track at some cuts
 * (doc/wire.md section 11); what is judged are the bytes.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pcap.h"
#include "softrnic/proto/mpa_scan.h"
#include "softrnic/trace/flow.h"
#include "softrnic/trace/pcapng.h"

struct out {
	FILE *file;
	struct flow flow;
	const uint8_t *bytes; /* of the next packet */
	uint64_t packets;
};

/* One direction, and how far it is said. */
struct half {
	const struct pcap_stream *stream;
	struct mpa_scan scan;
	size_t said;
};

static void emit(void *to, const struct tcpip_segment *seg, enum flow_side from, size_t len)
{
	static uint8_t packet[TCPIP_HEADERS_MAX + TCPIP_PAYLOAD_MAX];
	uint8_t head[PCAPNG_HEAD], tail[PCAPNG_TAIL_MAX];
	struct out *out = to;
	size_t headers = tcpip_headers_len(seg);
	struct pcapng_packet p = {
		.time_ns = out->packets++ * 1000,
		.captured = (uint32_t)(headers + len),
		.original = (uint32_t)(headers + len),
		.outbound = from == FLOW_US,
	};

	tcpip_encode(packet, seg, out->bytes, len);
	if (len)
		memcpy(packet + headers, out->bytes, len);
	pcapng_encode_head(head, &p);
	fwrite(head, 1, sizeof(head), out->file);
	fwrite(packet, 1, headers + len, out->file);
	fwrite(tail, 1, pcapng_encode_tail(tail, &p), out->file);
}

static size_t next_frame(struct half *h)
{
	const uint8_t *p = h->stream->data + h->said;
	size_t rest = h->stream->len - h->said, frame;
	size_t head = h->scan.operational ? MPA_SCAN_FPDU_MIN : MPA_SCAN_HEAD_MAX;

	if (rest < head)
		return rest;
	frame = mpa_scan(&h->scan, p, head) + h->scan.left;
	h->scan.left = 0;
	if (h->scan.foreign || frame > TCPIP_PAYLOAD_MAX)
		frame = TCPIP_PAYLOAD_MAX;
	return frame < rest ? frame : rest;
}

static void say_frame(struct out *out, struct half *h, enum flow_side from)
{
	size_t len = next_frame(h);

	if (!len)
		return;
	out->bytes = h->stream->data + h->said;
	flow_data(&out->flow, from, len, emit, out);
	h->said += len;
}

static struct tcpip_end end_of(const struct pcap_stream *s)
{
	struct tcpip_end end = {.port = s->from.port};
	uint32_t addr = htobe32(s->from.addr);

	memcpy(end.addr, &addr, sizeof(addr));
	return end;
}

/* Request, reply, and then one side after the other. */
static void say_conn(struct out *out, const struct pcap_conn *conn)
{
	struct half half[2] = {{.stream = &conn->stream[0]}, {.stream = &conn->stream[1]}};

	flow_init(&out->flow, 0);
	for (int side = 0; side < 2; side++)
		out->flow.end[side] = end_of(&conn->stream[side]);
	flow_open(&out->flow, FLOW_US, emit, out);
	for (enum flow_side side = FLOW_US; side <= FLOW_PEER; side++)
		say_frame(out, &half[side], side);
	half[FLOW_US].scan.markers = half[FLOW_PEER].scan.wants_markers;
	half[FLOW_PEER].scan.markers = half[FLOW_US].scan.wants_markers;
	for (enum flow_side side = FLOW_US; side <= FLOW_PEER; side++)
		while (half[side].said < half[side].stream->len)
			say_frame(out, &half[side], side);
	for (enum flow_side side = FLOW_US; side <= FLOW_PEER; side++)
		flow_fin(&out->flow, side, emit, out);
}

/* Bytes that were captured, behind some that were not. */
static bool has_hole(const struct pcap_stream *s)
{
	for (size_t i = s->len; i < s->size; i++)
		if (s->seen[i])
			return true;
	return false;
}

static void die(const char *file, const char *why)
{
	fprintf(stderr, "recut: %s: %s\n", file, why);
	exit(1);
}

int main(int argc, char **argv)
{
	uint8_t section[PCAPNG_SECTION_MAX];
	struct out out = {0};
	struct pcap in;
	int err;

	if (argc != 3)
		die("usage", "recut IN.pcap OUT.pcapng");
	err = pcap_load(&in, argv[1]);
	if (err)
		die(argv[1], strerror(-err));
	if (in.n == 0 || in.n == PCAP_CONNS_MAX)
		die(argv[1], in.n ? "too many connections" : "no connection");
	out.file = fopen(argv[2], "wbe");
	if (!out.file)
		die(argv[2], "cannot be created");
	fwrite(section, 1, pcapng_encode_section(section, sizeof(section), "recut", "recut"),
	       out.file);
	for (unsigned i = 0; i < in.n; i++) {
		if (has_hole(&in.conn[i].stream[0]) || has_hole(&in.conn[i].stream[1]))
			die(argv[1], "bytes are missing in the middle of a connection");
		say_conn(&out, &in.conn[i]);
	}
	pcap_fini(&in);
	if (fclose(out.file))
		die(argv[2], "cannot be written");
	return 0;
}
