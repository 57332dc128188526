/* SPDX-License-Identifier: BSD-3-Clause */
/* etcd -- measures Puts of keys through etcd's own interface (gRPC), over HTTP/2 by libnghttp2. See
 * ../README.md. */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/die.h"
#include "load.h"
#include "wire.h"

#define ETCD_KEY    12 /* length of a key in bytes */
#define ETCD_PREFIX 5  /* bytes of gRPC's prefix: a flag "not compressed", and the length */
#define ETCD_HEAD   32 /* the longest request head before the value, in bytes */
#define ETCD_WINDOW (1 << 30)

struct etcd_put {
	struct load_conn *lc;
	unsigned slot;
	char head[ETCD_HEAD]; /* the request up to the value */
	size_t head_len, sent;
	bool is_put; /* the server has answered with its status */
};

struct etcd {
	struct wire *w;
	nghttp2_session *session;
	struct etcd_put *puts; /* one put a slot */
};

static void etcd_must(int ret, const char *what)
{
	if (ret < 0)
		die("%s: %s", what, nghttp2_strerror(ret));
}

/* ---- the request: message PutRequest { bytes key = 1; bytes value = 2; } ---- */

static size_t etcd_varint(char *to, size_t n)
{
	size_t len = 0;

	for (; n >= 0x80; n >>= 7)
		to[len++] = (char)(n | 0x80);
	to[len++] = (char)n;
	return len;
}

static void etcd_make(struct etcd_put *p, uint64_t at, size_t value)
{
	char *to = p->head + ETCD_PREFIX;
	size_t len;

	*to++ = 1 << 3 | 2;
	*to++ = ETCD_KEY;
	snprintf(to, ETCD_KEY + 1, "%0*llx", ETCD_KEY, (unsigned long long)at);
	to += ETCD_KEY;
	*to++ = 2 << 3 | 2;
	to += etcd_varint(to, value);
	p->head_len = (size_t)(to - p->head);
	p->sent = 0;
	len = p->head_len - ETCD_PREFIX + value;
	p->head[0] = 0;
	for (unsigned i = 0; i < 4; i++)
		p->head[1 + i] = (char)(len >> (24 - 8 * i));
}

static ssize_t etcd_read_part(struct etcd_put *p, const char *part, size_t begin, size_t end,
			      uint8_t *to, size_t room)
{
	size_t len = p->sent < end ? end - p->sent : 0;

	len = len < room ? len : room;
	memcpy(to, part + (p->sent - begin), len);
	p->sent += len;
	return (ssize_t)len;
}

static ssize_t etcd_read(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room,
			 uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct etcd_put *p = source->ptr;
	const struct load *l = p->lc->load;
	size_t end = p->head_len + l->c->size;
	ssize_t len = 0;

	(void)session;
	(void)stream;
	(void)arg;
	if (p->sent < p->head_len)
		len = etcd_read_part(p, p->head, 0, p->head_len, to, room);
	if (p->sent >= p->head_len)
		len += etcd_read_part(p, l->payload, p->head_len, end, to + len,
				      room - (size_t)len);
	if (p->sent == end)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return len;
}

/* ---- the session ---- */

static ssize_t etcd_send(nghttp2_session *session, const uint8_t *data, size_t len, int flags,
			 void *arg)
{
	struct etcd *e = arg;

	(void)session;
	(void)flags;
	wire_put(e->w, &(const struct iovec){(void *)data, len}, 1);
	return (ssize_t)len;
}

static int etcd_on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
			  size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
			  void *arg)
{
	struct etcd_put *p = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	(void)arg;
	if (p && name_len == 11 && memcmp(name, "grpc-status", 11) == 0)
		p->is_put = value_len == 1 && value[0] == '0';
	if (name_len == 12 && memcmp(name, "grpc-message", 12) == 0 && value_len)
		die("put: %.*s", (int)value_len, (const char *)value);
	return 0;
}

static int etcd_on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *arg)
{
	struct etcd_put *p = nghttp2_session_get_stream_user_data(session, stream);

	(void)arg;
	if (!p)
		return 0;
	if (code || !p->is_put)
		die("put: the stream was closed with code %u", code);
	load_done(p->lc, p->slot);
	return 0;
}

static void etcd_new_session(struct etcd *e)
{
	const nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, ETCD_WINDOW};
	nghttp2_session_callbacks *calls;

	etcd_must(nghttp2_session_callbacks_new(&calls), "HTTP/2");
	nghttp2_session_callbacks_set_send_callback(calls, etcd_send);
	nghttp2_session_callbacks_set_on_header_callback(calls, etcd_on_header);
	nghttp2_session_callbacks_set_on_stream_close_callback(calls, etcd_on_close);
	etcd_must(nghttp2_session_client_new(&e->session, calls, e), "HTTP/2");
	nghttp2_session_callbacks_del(calls);
	etcd_must(nghttp2_submit_settings(e->session, NGHTTP2_FLAG_NONE, &window, 1), "HTTP/2");
}

static void etcd_open(struct load_conn *lc)
{
	struct etcd *e = lc->own;

	e->puts = calloc(lc->load->c->depth, sizeof(*e->puts));
	if (!e->puts)
		die_errno("memory");
	e->w = lc->wire;
	etcd_new_session(e);
}

static void etcd_post(struct load_conn *lc, unsigned slot, uint64_t at)
{
#define ETCD_HEADER(name, value)                                                                   \
	{                                                                                          \
		(uint8_t *)(name), (uint8_t *)(value), sizeof(name) - 1, sizeof(value) - 1, 0      \
	}
	static const nghttp2_nv headers[] = {ETCD_HEADER(":method", "POST"),
					     ETCD_HEADER(":scheme", "http"),
					     ETCD_HEADER(":path", "/etcdserverpb.KV/Put"),
					     ETCD_HEADER(":authority", "bench"),
					     ETCD_HEADER("content-type", "application/grpc"),
					     ETCD_HEADER("te", "trailers")};
	struct etcd *e = lc->own;
	struct etcd_put *p = &e->puts[slot];
	nghttp2_data_provider body = {.source.ptr = p, .read_callback = etcd_read};

	*p = (struct etcd_put){.lc = lc, .slot = slot};
	etcd_make(p, at, lc->load->c->size);
	etcd_must(nghttp2_submit_request(e->session, NULL, headers,
					 sizeof(headers) / sizeof(headers[0]), &body, p),
		  "put");
	etcd_must(nghttp2_session_send(e->session), "send");
}

static void etcd_service(struct load_conn *lc, unsigned events)
{
	struct etcd *e = lc->own;
	char in[16384];
	size_t n = events & EPOLLIN ? wire_get(e->w, in, sizeof(in)) : 0;

	if (n && nghttp2_session_mem_recv(e->session, (uint8_t *)in, n) != (ssize_t)n)
		die("the server's answer is not HTTP/2");
	etcd_must(nghttp2_session_send(e->session), "send");
	wire_flush(e->w);
}

static void etcd_close(struct load_conn *lc)
{
	struct etcd *e = lc->own;

	nghttp2_session_del(e->session);
	free(e->puts);
}

int main(int argc, char **argv)
{
	static const struct load_client client = {.who = "etcd",
						  .own = sizeof(struct etcd),
						  .has_wire = true,
						  .open = etcd_open,
						  .post = etcd_post,
						  .service = etcd_service,
						  .close = etcd_close};

	return load_main(&client, argc, argv);
}
