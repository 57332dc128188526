/* SPDX-License-Identifier: BSD-3-Clause */
/* mirror -- measures librpmirror against rpmirrord. See README.md. */
#include <librpmirror.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/device.h"
#include "lib/die.h"
#include "lib/result.h"
#include "lib/samples.h"
#include "lib/span.h"
#include "mirror_impl.h"

#define MIRROR_SLOTS  64u
#define MIRROR_EXTENT (2u << 20)
/* more extents than can be hot at the same time; they are used in turn, so each is cold again at
 * its next use */
#define MIRROR_EXTENTS 272u
#define MIRROR_RANGES  256u
#define MIRROR_ALL_NS  20000000000u

struct mirror {
	const struct bench_case *c;
	struct rpmirror *m;
	char *addr;
	struct span span; /* offsets of the flushes */
	uint64_t word;
	struct samples *samples;
};

/* Counts the local write-backs: the function below replaces fdatasync() in librpmirror's calls. */
static uint64_t mirror_local_writebacks;

__attribute__((visibility("default"))) int fdatasync(int fd)
{
	mirror_local_writebacks++;
	return (int)syscall(SYS_fdatasync, fd);
}

void mirror_must(int ret, const char *what)
{
	if (ret)
		die("%s: %s: %s", what, rpmirror_err_2str(ret), rpmirror_errormsg());
}

struct rpmirror *mirror_map(unsigned flags, char **addr, uint64_t size)
{
	struct rpmirror *m;
	void *at;
	size_t len;

	mirror_must(rpmirror_map(MIRROR_SET, NULL, flags, &m, &at, &len), "map");
	if (len < size)
		die("the set is too small");
	*addr = at;
	return m;
}

struct rpmirror_state mirror_state(struct rpmirror *m)
{
	struct rpmirror_state state = {.size = sizeof(state)};

	mirror_must(rpmirror_get_state(m, &state), "state");
	return state;
}

void mirror_await_all(struct rpmirror *m)
{
	uint64_t until = clock_now_ns() + MIRROR_ALL_NS;
	const struct timespec moment = {.tv_nsec = 1000000};
	struct rpmirror_state state;

	while (state = mirror_state(m), state.insync_mask != state.config_mask) {
		if (clock_now_ns() > until)
			die("not all copies are in-sync");
		nanosleep(&moment, NULL);
	}
}

void mirror_unmap(struct rpmirror *m)
{
	mirror_must(rpmirror_unmap(&m), "unmap");
}

static char *mirror_next(struct mirror *t)
{
	char *at = t->addr + span_next(&t->span);

	*(uint64_t *)(void *)at = ++t->word;
	return at;
}

static void mirror_next_ranges(struct mirror *t, struct rpmirror_range v[MIRROR_RANGES])
{
	for (unsigned i = 0; i < t->c->every; i++)
		v[i] = (struct rpmirror_range){mirror_next(t), t->c->size};
}

static void mirror_flush_one(struct mirror *t)
{
	struct rpmirror_range v[MIRROR_RANGES];

	mirror_next_ranges(t, v);
	mirror_must(rpmirror_flush(t->m, v, t->c->every, 0, NULL), "flush");
}

static void mirror_store8_one(struct mirror *t)
{
	uint64_t *at = (uint64_t *)(void *)mirror_next(t);

	mirror_must(rpmirror_store8(t->m, at, t->word + 1), "store8");
}

/* Repeat the call for `ns` nanoseconds. Returns the time that this took, in ns. */
static uint64_t mirror_for(struct mirror *t, void (*one)(struct mirror *t), uint64_t ns)
{
	uint64_t begin = clock_now_ns(), then = begin, now = begin;

	samples_clear(t->samples);
	while (now - begin < ns) {
		one(t);
		now = clock_now_ns();
		samples_add(t->samples, now - then);
		then = now;
	}
	return now - begin;
}

struct mirror_begun {
	uint64_t ticket, ns;
};

static void mirror_begin(struct mirror *t, struct mirror_begun *b)
{
	struct rpmirror_range v[MIRROR_RANGES];

	b->ns = clock_now_ns();
	mirror_next_ranges(t, v);
	mirror_must(rpmirror_flush_start(t->m, v, t->c->every, 0, &b->ticket), "begin a flush");
}

static void mirror_finish(struct mirror *t, const struct mirror_begun *b)
{
	mirror_must(rpmirror_flush_wait(t->m, b->ticket, -1, NULL), "wait for a flush");
	samples_add(t->samples, clock_now_ns() - b->ns);
}

/* Like mirror_for(), with `depth` flushes under way. */
static uint64_t mirror_deep_for(struct mirror *t, uint64_t ns)
{
	unsigned depth = t->c->depth, slot = 0;
	struct mirror_begun begun[MIRROR_SLOTS];
	uint64_t begin = clock_now_ns();

	samples_clear(t->samples);
	for (unsigned i = 0; i < depth; i++)
		mirror_begin(t, &begun[i]);
	for (; clock_now_ns() - begin < ns; slot = (slot + 1) % depth) {
		mirror_finish(t, &begun[slot]);
		mirror_begin(t, &begun[slot]);
	}
	for (unsigned i = 0; i < depth; i++)
		mirror_finish(t, &begun[(slot + i) % depth]);
	return clock_now_ns() - begin;
}

/* Choose offsets at least a page apart, even in memory. */
static struct span mirror_span(const struct bench_case *c)
{
	if (case_is_work(c, "mirror_activate"))
		return (struct span){.stride = MIRROR_EXTENT,
				     .size = (size_t)MIRROR_EXTENTS * MIRROR_EXTENT};
	return span_of_step(c, SPAN_PAGE);
}

/* Returns how many bytes were written to the disks of all copies. */
static uint64_t mirror_written(const struct bench_case *c)
{
	return device_written(c->where) + (c->tgt_where ? device_written(c->tgt_where) : 0);
}

static void mirror_calls(struct mirror_hosts *h, struct result *result, struct samples *samples)
{
	struct mirror t = {.c = h->c, .span = mirror_span(h->c), .samples = samples};
	void (*one)(struct mirror * t) =
		case_is_work(h->c, "mirror_store8") ? mirror_store8_one : mirror_flush_one;
	uint64_t written;

	t.m = mirror_map(0, &t.addr, t.span.size);
	mirror_await_all(t.m);
	mirror_for(&t, one, case_warmup_ns(h->c));
	mirror_local_writebacks = 0;
	written = mirror_written(h->c);
	result->ns = h->c->depth > 1 ? mirror_deep_for(&t, case_ns(h->c))
				     : mirror_for(&t, one, case_ns(h->c));
	result->local_writebacks = mirror_local_writebacks;
	result->disk_bytes = mirror_written(h->c) - written;
	mirror_unmap(t.m);
}

static void mirror_measure(const struct bench_case *c,
			   void (*measure)(struct mirror_hosts *h, struct result *result,
					   struct samples *samples))
{
	uint64_t size = case_is_work(c, "mirror_resync") ? c->size * c->every : mirror_span(c).size;
	struct samples *samples = samples_new();
	struct mirror_hosts h;
	struct result result = {0};

	size = (size + MIRROR_EXTENT - 1) / MIRROR_EXTENT * MIRROR_EXTENT;
	mirror_hosts_start(&h, c, c->conns + 1, size);
	measure(&h, &result, samples);
	mirror_hosts_stop(&h);
	if (strcmp(c->link, "shm") == 0 && !h.shm_rx_bytes)
		skip("link=shm: the lane went over TCP");
	result.count = samples->total;
	result.durability = h.is_volatile ? "volatile" : "file";
	result.writebacks = h.writebacks;
	result_print(c, &result, samples);
	samples_delete(samples);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*measure)(struct mirror_hosts *h, struct result *result,
				struct samples *samples);
	} works[] = {{"mirror_flush", mirror_calls},        {"mirror_store8", mirror_calls},
		     {"mirror_activate", mirror_calls},     {"mirror_failover", mirror_failover},
		     {"mirror_switch", mirror_switch_over}, {"mirror_resync", mirror_resync}};
	struct bench_case c;

	case_parse(&c, "mirror", argc, argv);
	if (!c.ini_polls)
		die("these calls poll: ini=poll");
	if (c.depth > (case_is_work(&c, "mirror_flush") ? MIRROR_SLOTS : 1))
		die("depth=%u: only flushes can be begun, at most %u", c.depth, MIRROR_SLOTS);
	if (c.every > MIRROR_RANGES)
		die("every=%u: at most %u ranges", c.every, MIRROR_RANGES);
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		if (case_is_work(&c, works[i].name)) {
			mirror_measure(&c, works[i].measure);
			return EXIT_SUCCESS;
		}
	}
	die("work=%s: there is no such work", c.work);
}
