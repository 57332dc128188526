/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_rma -- measures one-sided writes and reads on libfabric's public interface. A write is
 * complete when it is delivered at the target, or when it is committed to persistent memory there.
 *
 * Both ends poll, because libfabric's providers work only while a program calls them.
 */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fi_ends.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/result.h"
#include "lib/samples.h"
#include "lib/span.h"

#define RMA_LOOK_EVERY 4096

struct rma {
	const struct bench_case *c;
	const char *provider;
	uint64_t flags;   /* flags of the operation that ends a unit */
	unsigned counted; /* number of operations that are counted for a unit */
	struct fi_end e;
	struct span span;
	struct samples *samples;
	/* begun: begin times of the units under way; the address of an entry is the operation's
	 * context */
	uint64_t *begun;
};

static bool rma_reads(const struct rma *r)
{
	return case_is_work(r->c, "read");
}

static void rma_choose(struct rma *r, const struct bench_case *c, const char *who)
{
	*r = (struct rma){.c = c, .counted = 1};
	if (strcmp(who, "libfabric-tcp") == 0)
		r->provider = "tcp";
	else if (strcmp(who, "libfabric-shm") == 0)
		r->provider = "shm";
	else
		die("who=%s: there are libfabric-tcp, libfabric-shm", who);
	r->flags = case_is_persistent(c) ? FI_COMMIT_COMPLETE : FI_DELIVERY_COMPLETE;
	if (case_is_work(c, "write"))
		r->counted = c->every;
	else if (rma_reads(r))
		r->flags = 0;
	else if (!case_is_work(c, "write_flush"))
		die("work=%s: there are write_flush, write, read", c->work);
	if (rma_reads(r) && c->every != 1)
		die("work=read has no every");
}

/* Take a completion, or at least let the provider work. Returns false if there was none. */
static bool rma_take(struct rma *r, uint64_t **begun)
{
	struct fi_cq_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t got = fi_cq_read(r->e.cq, &entry, 1);

	if (got == -FI_EAGAIN)
		return false;
	if (got == -FI_EAVAIL && fi_cq_readerr(r->e.cq, &error, 0) == 1)
		die("an operation failed: %s", fi_strerror(error.err));
	fi_must(got, "fi_cq_read");
	*begun = entry.op_context;
	return true;
}

static ssize_t rma_try(struct rma *r, size_t at, uint64_t flags, uint64_t *begun)
{
	struct iovec local = {r->e.mem + at, r->c->size};
	void *desc = fi_mr_desc(r->e.mr);
	struct fi_rma_iov remote = {r->e.addr + at, r->c->size, r->e.key};
	struct fi_msg_rma msg = {.msg_iov = &local,
				 .desc = &desc,
				 .iov_count = 1,
				 .addr = r->e.peer,
				 .rma_iov = &remote,
				 .rma_iov_count = 1,
				 .context = begun};

	return rma_reads(r) ? fi_readmsg(r->e.ep, &msg, flags) : fi_writemsg(r->e.ep, &msg, flags);
}

/* Units whose completion was taken while a post waited for a free slot; they are counted later. */
struct rma_done {
	uint64_t *units[1024];
	unsigned count;
};

static void rma_post_one(struct rma *r, struct rma_done *done, uint64_t flags, uint64_t *begun)
{
	size_t at = span_next(&r->span);
	ssize_t ret;

	while ((ret = rma_try(r, at, flags, begun)) == -FI_EAGAIN)
		if (rma_take(r, &done->units[done->count]))
			done->count++;
	fi_must(ret, "post");
}

/* Post the writes of a unit. Only the last one, which is ordered after the others, requests a
 * completion. */
static void rma_post(struct rma *r, struct rma_done *done, uint64_t *begun)
{
	*begun = clock_now_ns();
	for (unsigned i = 1; i < r->c->every; i++)
		rma_post_one(r, done, 0, NULL);
	rma_post_one(r, done, FI_COMPLETION | r->flags, begun);
}

static uint64_t *rma_next(struct rma *r, struct rma_done *done)
{
	uint64_t *begun = NULL;

	if (done->count)
		return done->units[--done->count];
	while (!rma_take(r, &begun))
		;
	return begun;
}

static uint64_t rma_for(struct rma *r, uint64_t ns)
{
	uint64_t begin = clock_now_ns(), now = begin;
	struct rma_done done = {.count = 0};
	unsigned busy = r->c->depth;

	samples_clear(r->samples);
	for (unsigned i = 0; i < r->c->depth; i++)
		rma_post(r, &done, &r->begun[i]);
	while (busy) {
		uint64_t *begun = rma_next(r, &done);

		now = clock_now_ns();
		samples_add(r->samples, now - *begun);
		if (now - begin < ns)
			rma_post(r, &done, begun);
		else
			busy--;
	}
	return now - begin;
}

/* The target's program only lets its provider work, until the other end is gone. */
static void rma_target(const struct bench_case *c, int fd, void *arg)
{
	struct rma *r = arg;
	uint64_t *nothing;
	char byte;

	fi_end_open(&r->e, c, r->provider, r->flags, r->span.size, fd, true);
	do {
		for (int i = 0; i < RMA_LOOK_EVERY; i++)
			rma_take(r, &nothing);
	} while (recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	fi_end_close(&r->e);
}

static const char *rma_who(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "who=", 4) == 0)
			return argv[i] + 4;
	die("who= is missing");
}

int main(int argc, char **argv)
{
	const char *who = rma_who(argc, argv);
	struct result result = {0};
	struct bench_case c;
	struct ends ends;
	struct rma r;

	case_parse(&c, who, argc, argv);
	c.tgt_polls = true;
	rma_choose(&r, &c, who);
	r.span = span_of(&c);
	ends_start(&ends, &c, rma_target, &r);
	fi_end_open(&r.e, &c, r.provider, r.flags, r.span.size, ends.fd, false);
	r.samples = samples_new();
	r.begun = calloc(c.depth, sizeof(*r.begun));
	rma_for(&r, case_warmup_ns(&c));
	result.ns = rma_for(&r, case_ns(&c));
	result.count = r.samples->total * r.counted;
	result.bytes = r.samples->total * c.every * c.size;
	fi_end_close(&r.e);
	ends_finish(&ends);
	result_print(&c, &result, r.samples);
	samples_delete(r.samples);
	free(r.begun);
	return EXIT_SUCCESS;
}
