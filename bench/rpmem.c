/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmem -- measures librpmem against rpmemd --listen. See README.md. */
#include <librpmem.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/result.h"
#include "lib/samples.h"
#include "lib/span.h"
#include "rpmem_impl.h"

#define RPMEM_HEADER 4096u /* length of a pool's header, which the calls must not touch */

struct rpmem {
	const struct bench_case *c;
	struct rpmem_target target;
	struct span span;
	char *pool, *buff;
	size_t size; /* size of the pool */
	RPMEMpool *rpp;
	struct samples *samples;
};

static void rpmem_must(int ret, const char *what)
{
	if (ret)
		die("%s: %s", what, rpmem_errormsg());
}

static char *rpmem_map(size_t size)
{
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		die_errno("map memory");
	memset(mem, 0x5a, size);
	return mem;
}

static void rpmem_persist_one(struct rpmem *r)
{
	rpmem_must(rpmem_persist(r->rpp, RPMEM_HEADER + span_next(&r->span), r->c->size, 0, 0),
		   "persist");
}

static void rpmem_read_one(struct rpmem *r)
{
	rpmem_must(rpmem_read(r->rpp, r->buff, RPMEM_HEADER + span_next(&r->span), r->c->size, 0),
		   "read");
}

static void rpmem_open_pool(struct rpmem *r)
{
	static const struct rpmem_pool_attr attr = {.signature = "BENCH", .major = 1};
	unsigned lanes = r->c->conns;

	r->rpp = rpmem_create(r->target.name, RPMEM_SET, r->pool, r->size, &lanes, &attr);
	if (!r->rpp)
		die("create: %s", rpmem_errormsg());
	if (lanes != r->c->conns)
		skip("%u of %u lanes were granted (ulimit -n)", lanes, r->c->conns);
}

static void rpmem_close_pool(struct rpmem *r)
{
	rpmem_must(rpmem_close(r->rpp), "close");
	rpmem_must(rpmem_remove(r->target.name, RPMEM_SET, 0), "remove");
}

/* Repeat the call for `ns` nanoseconds. Returns the time that this took, in ns. */
static uint64_t rpmem_for(struct rpmem *r, void (*one)(struct rpmem *r), uint64_t ns)
{
	uint64_t begin = clock_now_ns(), then = begin, now = begin;

	samples_clear(r->samples);
	while (now - begin < ns) {
		one(r);
		now = clock_now_ns();
		samples_add(r->samples, now - then);
		then = now;
	}
	return now - begin;
}

static void rpmem_calls(struct rpmem *r, struct result *result)
{
	void (*one)(struct rpmem * r) =
		case_is_work(r->c, "rpmem_read") ? rpmem_read_one : rpmem_persist_one;

	rpmem_open_pool(r);
	rpmem_for(r, one, case_warmup_ns(r->c));
	result->ns = rpmem_for(r, one, case_ns(r->c));
	rpmem_close_pool(r);
	result->bytes = r->samples->total * r->c->size;
}

/* Measure only the create call, not the removal of the pool before the next create call. */
static void rpmem_creates(struct rpmem *r, struct result *result)
{
	uint64_t until = clock_now_ns() + case_ns(r->c), begin, end;

	do {
		begin = clock_now_ns();
		rpmem_open_pool(r);
		end = clock_now_ns();
		samples_add(r->samples, end - begin);
		result->ns += end - begin;
		rpmem_close_pool(r);
	} while (end < until);
}

/* Each lane needs descriptors, so raise the limit. */
static void rpmem_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		die_errno("limit of open files");
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void rpmem_measure(const struct bench_case *c,
			  void (*measure)(struct rpmem *r, struct result *result))
{
	struct rpmem r = {.c = c, .span = span_of(c), .samples = samples_new()};
	struct result result = {.durability = r.target.durability};

	r.size = RPMEM_HEADER + (r.span.size + RPMEM_HEADER - 1) / RPMEM_HEADER * RPMEM_HEADER;
	if (r.size < RPMEM_MIN_PART)
		r.size = RPMEM_MIN_PART;
	rpmem_raise_limit();
	rpmem_target_start(&r.target, c, r.size);
	r.pool = rpmem_map(r.size);
	r.buff = rpmem_map(c->size);
	measure(&r, &result);
	rpmem_target_stop(&r.target);
	if (strcmp(c->link, "shm") == 0 && !r.target.shm_rx_bytes)
		skip("link=shm: the lane went over TCP");
	result.count = r.samples->total;
	result.writebacks = r.target.writebacks;
	result_print(c, &result, r.samples);
	samples_delete(r.samples);
	munmap(r.pool, r.size);
	munmap(r.buff, c->size);
}

int main(int argc, char **argv)
{
	struct bench_case c;

	case_parse(&c, "rpmem", argc, argv);
	if (c.depth != 1 || c.every != 1)
		die("these calls wait for each other: depth=1 every=1");
	if (case_is_work(&c, "rpmem_create"))
		rpmem_measure(&c, rpmem_creates);
	else if (case_is_work(&c, "rpmem_persist") || case_is_work(&c, "rpmem_read"))
		rpmem_measure(&c, rpmem_calls);
	else
		die("work=%s: there are rpmem_persist, rpmem_read, rpmem_create", c.work);
	return EXIT_SUCCESS;
}
