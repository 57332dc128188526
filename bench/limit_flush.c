/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures a flush to a file without a library: a message over TCP, a store into a shared mapping
 * at the target and msync(), and an answer. With "mirrored" the initiator stores into its own file
 * and calls fdatasync() between the message and the answer.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/file.h"
#include "lib/result.h"
#include "lib/span.h"
#include "limit_impl.h"

struct flush_file {
	struct span span;
	char *mem;
	int fd;
};

static struct flush_file flush_open(const struct bench_case *c, const char *where)
{
	struct flush_file f = {.span = span_of(c)};

	f.fd = file_open(where, f.span.size);
	f.mem = mmap(NULL, f.span.size, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	if (f.mem == MAP_FAILED)
		die_errno("map the file");
	return f;
}

/* Store the bytes. Returns their address. */
static char *flush_store(struct flush_file *f, const char *data, size_t len)
{
	return memcpy(f->mem + span_next(&f->span), data, len);
}

static void flush_target(const struct bench_case *c, int fd, void *arg)
{
	struct flush_file f = flush_open(c, case_target_where(c));
	char *in = limit_buffer(c->size), *out = limit_buffer(c->back);
	int sock = limit_socket_accept(c, fd);

	while (limit_socket_recv(sock, in, c->size, c->tgt_polls)) {
		if (msync(flush_store(&f, in, c->size), c->size, MS_SYNC))
			die_errno("write the mapping back");
		limit_socket_send(sock, out, c->back);
	}
}

struct flush {
	const struct bench_case *c;
	struct flush_file *own; /* NULL: the initiator has no file */
	char *out, *in;
	int sock;
};

static bool flush_one(struct flush *f)
{
	f->out[0]++;
	if (f->own)
		flush_store(f->own, f->out, f->c->size);
	limit_socket_send(f->sock, f->out, f->c->size);
	if (f->own && fdatasync(f->own->fd))
		die_errno("write the file back");
	return limit_socket_recv(f->sock, f->in, f->c->back, f->c->ini_polls);
}

static uint64_t flush_for(struct flush *f, uint64_t ns, struct samples *s)
{
	uint64_t begin = clock_now_ns(), then = begin, now = begin;

	samples_clear(s);
	while (now - begin < ns && flush_one(f)) {
		now = clock_now_ns();
		samples_add(s, now - then);
		then = now;
	}
	return now - begin;
}

static void flush_measure(const struct bench_case *c, struct flush_file *own)
{
	struct flush f = {c, own, limit_buffer(c->size), limit_buffer(c->back), -1};
	struct samples *s = samples_new();
	struct result r = {0};
	struct ends e;

	ends_start(&e, c, flush_target, NULL);
	f.sock = limit_socket_connect(c, e.fd);
	flush_for(&f, case_warmup_ns(c), s);
	r.ns = flush_for(&f, case_ns(c), s);
	r.count = s->total;
	shutdown(f.sock, SHUT_WR);
	ends_finish(&e);
	result_print(c, &r, s);
	samples_delete(s);
}

void limit_persist(const struct bench_case *c)
{
	flush_measure(c, NULL);
}

void limit_mirrored(const struct bench_case *c)
{
	struct flush_file own = flush_open(c, c->where);

	flush_measure(c, &own);
	close(own.fd);
}
