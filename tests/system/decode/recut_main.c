/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * recut IN.pcap OUT.pcapng -- copy the TCP connections of a real capture, with one packet for each
 * frame of MPA. TCP can cut a stream anywhere, and at some cuts Wireshark no longer finds the next
 * frame (doc/wire.md section 11).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "lib/pcap.h"
#include "softrnic/trace/mpa_scan.h"

/* One direction of a connection, and the position up to which it has been written. */
struct half {
	const struct pcap_stream *stream;
	struct mpa_scan scan;
	size_t said;
};

static size_t next_frame(struct half *h)
{
	const uint8_t *p = h->stream->data + h->said;
	size_t rest = h->stream->len - h->said, frame;
	size_t head = mpa_scan_head(&h->scan);

	if (rest < head)
		return rest;
	frame = mpa_scan(&h->scan, p, head) + h->scan.left;
	h->scan.left = 0;
	if (h->scan.foreign || frame > TCPIP_PAYLOAD_MAX)
		frame = TCPIP_PAYLOAD_MAX;
	return frame < rest ? frame : rest;
}

static void write_frame(struct capture *out, struct half *h, enum flow_side from)
{
	size_t len = next_frame(h);

	if (!len)
		return;
	capture_data(out, from, h->stream->data + h->said, len);
	h->said += len;
}

/* Write the request and the reply, then all bytes of one side, then all bytes of the other side. */
static void write_conn(struct capture *out, const struct pcap_conn *conn)
{
	const struct pcap_stream *stream = conn->stream;
	struct half half[2] = {{.stream = &stream[0]}, {.stream = &stream[1]}};

	capture_begin(out, (uint32_t[]){stream[0].from.addr, stream[1].from.addr},
		      (uint16_t[]){stream[0].from.port, stream[1].from.port});
	for (enum flow_side side = FLOW_US; side <= FLOW_PEER; side++)
		write_frame(out, &half[side], side);
	half[FLOW_US].scan.markers = half[FLOW_PEER].scan.wants_markers;
	half[FLOW_PEER].scan.markers = half[FLOW_US].scan.wants_markers;
	for (enum flow_side side = FLOW_US; side <= FLOW_PEER; side++)
		while (half[side].said < half[side].stream->len)
			write_frame(out, &half[side], side);
	for (enum flow_side side = FLOW_US; side <= FLOW_PEER; side++)
		capture_fin(out, side);
}

/* Returns true if the capture has bytes after missing ones. */
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
	struct capture out;
	struct pcap in;
	int err;

	if (argc != 3)
		die("usage", "recut IN.pcap OUT.pcapng");
	err = pcap_load(&in, argv[1]);
	if (err)
		die(argv[1], strerror(-err));
	if (in.n == 0 || in.n == PCAP_CONNS_MAX)
		die(argv[1], in.n ? "too many connections" : "no connection");
	err = capture_open(&out, argv[2]);
	if (err)
		die(argv[2], strerror(-err));
	for (unsigned i = 0; i < in.n; i++) {
		if (has_hole(&in.conn[i].stream[0]) || has_hole(&in.conn[i].stream[1]))
			die(argv[1], "bytes are missing in the middle of a connection");
		write_conn(&out, &in.conn[i]);
	}
	pcap_fini(&in);
	err = capture_close(&out);
	if (err)
		die(argv[2], strerror(-err));
	return 0;
}
