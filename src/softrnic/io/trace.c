/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "softrnic/io/config.h"
#include "softrnic/io/trace_impl.h"
#include "softrnic/trace/mpa_scan.h"
#include "softrnic/trace/pcapng.h"

/* The buffer of the next packet. Headers, and bytes kept from earlier packets, are added at the
 * front, so that the payload never moves. */
#define FRONT     (PCAPNG_HEAD + TCPIP_HEADERS_MAX + MPA_SCAN_HEAD_MAX)
#define PIECE_MAX (TCPIP_PAYLOAD_MAX - MPA_SCAN_HEAD_MAX)

/*
 * One direction of a connection. Wireshark loses synchronization if a packet ends within a frame's
 * head, so the bytes of an incomplete head are kept for the next packet.
 */
struct half {
	struct mpa_scan scan;
	uint8_t kept[MPA_SCAN_HEAD_MAX];
	size_t n_kept;
};

struct trace {
	struct list link; /* link in tracer.all */
	struct flow flow;
	struct half half[2]; /* indexed by enum flow_side */
	uint8_t *bytes;      /* the next packet's bytes, in packet_buf */
	uint64_t key;        /* key of the connection; both ends compute the same key */
	bool initiator;
};

static struct {
	pthread_mutex_t lock; /* a leaf lock */
	struct list all;
} tracer = {.lock = PTHREAD_MUTEX_INITIALIZER, .all = LIST_INIT(tracer.all)};

static uint8_t packet_buf[FRONT + PIECE_MAX + PCAPNG_TAIL_MAX]; /* guarded by the lock */
static uint8_t *const payload = packet_buf + FRONT;

/* Write a packet whose bytes are in the buffer. The end of the block may overwrite later bytes of
 * the buffer. */
static void trace_append(uint8_t *ip, size_t len, bool outbound, const char *comment)
{
	uint64_t snaplen = config_get()->trace_snaplen;
	uint8_t *block = ip - PCAPNG_HEAD;
	struct pcapng_packet packet = {
		.time_ns = clock_read_ns(CLOCK_REALTIME),
		.captured = (uint32_t)(snaplen && len > snaplen ? snaplen : len),
		.original = (uint32_t)len,
		.outbound = outbound,
		.comment = comment,
	};
	size_t tail;

	pcapng_encode_head(block, &packet);
	tail = pcapng_encode_tail(ip + packet.captured, &packet);
	trace_file_append(block, PCAPNG_HEAD + packet.captured + tail, config_get()->trace_bytes);
}

/* Write one packet of a flow; its payload is in the buffer. */
static void trace_emit(void *arg, const struct tcpip_segment *seg, enum flow_side from, size_t len)
{
	struct trace *t = arg;
	size_t headers = tcpip_headers_len(seg);
	uint8_t *ip = t->bytes - headers;
	bool is_first = seg->flags & TCP_SYN && from == FLOW_US;
	char comment[PCAPNG_COMMENT_MAX];

	if (is_first)
		snprintf(comment, sizeof(comment), "%s, traced by process %d (%s)",
			 t->initiator ? "initiator" : "responder", (int)getpid(),
			 program_invocation_short_name);
	tcpip_encode(ip, seg, t->bytes, len);
	trace_append(ip, headers + len, from == FLOW_US, is_first ? comment : NULL);
}

static void trace_say(struct trace *t, enum flow_side from, uint8_t *bytes, size_t len)
{
	t->bytes = bytes;
	if (len)
		flow_data(&t->flow, from, len, trace_emit, t);
}

/* Write the next n bytes, which the caller has stored at `payload`. */
static void trace_say_payload(struct trace *t, enum flow_side from, size_t n)
{
	struct half *h = &t->half[from];
	uint8_t *bytes = payload - h->n_kept;
	size_t len = h->n_kept + n, now;

	memcpy(bytes, h->kept, h->n_kept);
	now = mpa_scan(&h->scan, bytes, len);
	h->n_kept = len - now;
	memcpy(h->kept, bytes + now, h->n_kept);
	t->half[!from].scan.markers = h->scan.wants_markers;
	trace_say(t, from, bytes, now);
}

/* Write the kept bytes now, because no packet follows. */
static void trace_say_kept(struct trace *t, enum flow_side from)
{
	struct half *h = &t->half[from];

	memcpy(payload, h->kept, h->n_kept);
	trace_say(t, from, payload, h->n_kept);
	h->n_kept = 0;
}

static void trace_say_fin(struct trace *t, enum flow_side from)
{
	trace_say_kept(t, from);
	flow_fin(&t->flow, from, trace_emit, t);
}

static void trace_say_all_kept(struct trace *t)
{
	trace_say_kept(t, FLOW_US);
	trace_say_kept(t, FLOW_PEER);
}

/* --- claiming a connection ------------------------------------------------------------------ */

/* Claim the connection for this end. If both ends wrote the connection to the file, a reader would
 * mistake the second copy for retransmissions. So only the end that claims the connection first
 * writes it, even if the ends are two processes that share a file. */
static bool trace_claim(const struct trace *t)
{
	struct list *it;

	list_for_each (it, &tracer.all)
		if (container_of(it, struct trace, link)->key == t->key)
			return false;
	return trace_file_claim(t->key);
}

static bool trace_begin(struct trace *t)
{
	enum flow_side initiator = t->initiator ? FLOW_US : FLOW_PEER;

	if (!trace_file_open(config_get()->trace))
		return false;
	t->key = trace_key(&t->flow, initiator);
	if (!trace_claim(t)) {
		LOG_INFO("traced by the other end of the connection");
		return false;
	}
	list_add_tail(&tracer.all, &t->link);
	flow_open(&t->flow, initiator, trace_emit, t);
	return true;
}

bool trace_is_wanted(void)
{
	return config_get()->trace != NULL;
}

struct trace *trace_new(const struct link_addr *us, const struct link_addr *peer, bool initiator)
{
	struct trace *t;
	bool begun;

	if (!trace_is_wanted())
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t) {
		LOG_ERROR_LIMITED("a connection is not traced: out of memory");
		return NULL;
	}
	list_init(&t->link);
	t->initiator = initiator;
	t->bytes = payload;
	flow_init(&t->flow, clock_read_ns(CLOCK_REALTIME));
	trace_ends(&t->flow, us, peer);
	pthread_mutex_lock(&tracer.lock);
	begun = trace_begin(t);
	pthread_mutex_unlock(&tracer.lock);
	if (begun)
		return t;
	free(t);
	return NULL;
}

void trace_forget(struct trace *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&tracer.lock);
	list_del(&t->link);
	pthread_mutex_unlock(&tracer.lock);
	free(t);
}

/* Finish the trace with the last packet that the kernel sends: a reset if bytes are unread (RFC
 * 2525 s2.17), else a FIN. */
void trace_delete(struct trace *t, bool unread)
{
	if (!t)
		return;
	pthread_mutex_lock(&tracer.lock);
	trace_say_all_kept(t);
	if (unread)
		flow_reset(&t->flow, FLOW_US, trace_emit, t);
	else
		flow_fin(&t->flow, FLOW_US, trace_emit, t);
	trace_file_unclaim(t->key);
	pthread_mutex_unlock(&tracer.lock);
	trace_forget(t);
}

/* --- bytes -------------------------------------------------------------------------------- */

/*
 * Record an error. After the peer's FIN the kernel reports a reset as EPIPE (RFC 9293 s3.10.7.4).
 */
static void trace_note_error(struct trace *t, int err)
{
	if (err == EAGAIN || err == EINTR || err == EFAULT || err == ENOMEM)
		return;
	trace_say_all_kept(t);
	if (err == ECONNRESET || err == EPIPE)
		flow_reset(&t->flow, FLOW_PEER, trace_emit, t);
	t->flow.over = true;
}

void *trace_enter(struct trace *t, size_t *size)
{
	pthread_mutex_lock(&tracer.lock);
	if (!trace_file_is_open()) {
		pthread_mutex_unlock(&tracer.lock);
		return NULL;
	}
	*size = PIECE_MAX;
	return payload;
}

void trace_leave_sent(struct trace *t, ssize_t n)
{
	if (n > 0)
		trace_say_payload(t, FLOW_US, (size_t)n);
	else if (n < 0)
		trace_note_error(t, (int)-n);
	pthread_mutex_unlock(&tracer.lock);
}

void trace_leave_received(struct trace *t, ssize_t n)
{
	if (n > 0)
		trace_say_payload(t, FLOW_PEER, (size_t)n);
	else if (n == 0)
		trace_say_fin(t, FLOW_PEER);
	else
		trace_note_error(t, (int)-n);
	pthread_mutex_unlock(&tracer.lock);
}

void trace_shutdown(struct trace *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&tracer.lock);
	trace_say_fin(t, FLOW_US);
	pthread_mutex_unlock(&tracer.lock);
}

void trace_error(struct trace *t, int err)
{
	if (!t)
		return;
	pthread_mutex_lock(&tracer.lock);
	trace_note_error(t, err);
	pthread_mutex_unlock(&tracer.lock);
}

/* --- datagrams ---------------------------------------------------------------------------- */

static void trace_fill_gid(struct tcpip_end *end, bool v6, const uint8_t gid[UD_GID_LEN],
			   uint16_t port)
{
	*end = (struct tcpip_end){.port = port};
	memcpy(end->addr, gid + (v6 ? 0 : UD_GID_LEN - 4), v6 ? UD_GID_LEN : 4);
}

/* Called with the lock. */
static void trace_datagram_locked(const struct ud_packet *p, uint16_t own_port, bool outbound)
{
	struct udpip_packet packet = {
		.v6 = !ud_gid_is_ipv4(p->path.from),
		.traffic_class = p->path.traffic_class,
		.hop_limit = p->path.hop_limit,
	};
	uint8_t *ip = payload - udpip_headers_len(&packet);

	trace_fill_gid(&packet.from, packet.v6, p->path.from, outbound ? own_port : p->port);
	trace_fill_gid(&packet.to, packet.v6, p->path.to, outbound ? p->port : own_port);
	memcpy(payload, p->bytes, p->len);
	udpip_encode(ip, &packet, payload, p->len);
	trace_append(ip, udpip_headers_len(&packet) + p->len, outbound, NULL);
}

void trace_datagrams(const struct ud_packet *packets, int n, uint16_t own_port, bool outbound)
{
	if (!trace_is_wanted())
		return;
	pthread_mutex_lock(&tracer.lock);
	if (trace_file_open(config_get()->trace))
		for (int i = 0; i < n; i++)
			trace_datagram_locked(&packets[i], own_port, outbound);
	pthread_mutex_unlock(&tracer.lock);
}

/* --- fork() ------------------------------------------------------------------------------- */

void trace_atfork_prepare(void)
{
	pthread_mutex_lock(&tracer.lock);
}

void trace_atfork_parent(void)
{
	pthread_mutex_unlock(&tracer.lock);
}

/* In a forked child: forget the connections. They belong to the parent, which continues to write
 * them. */
void trace_atfork_child(void)
{
	while (list_pop(&tracer.all))
		;
	trace_file_forked();
	pthread_mutex_unlock(&tracer.lock);
}
