/* SPDX-License-Identifier: BSD-3-Clause */
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/payload.h"
#include "lib/result.h"

#define LOAD_EVENTS 64

size_t load_size(const struct load *l)
{
	size_t block = l->client->block ? l->client->block : 1;

	return (l->c->size + block - 1) / block * block;
}

void load_done(struct load_conn *lc, unsigned slot)
{
	struct load *l = lc->load;

	samples_add(l->samples, clock_now_ns() - lc->begun[slot]);
	l->done[l->done_count].lc = lc;
	l->done[l->done_count++].slot = slot;
}

void load_done_oldest(struct load_conn *lc)
{
	unsigned slot = lc->oldest;

	lc->oldest = (slot + 1) % lc->load->c->depth;
	load_done(lc, slot);
}

static void load_post(struct load_conn *lc, unsigned slot)
{
	struct load *l = lc->load;
	uint64_t at = span_next(&lc->span);

	l->payload[0]++;
	lc->begun[slot] = clock_now_ns();
	l->client->post(lc, slot, at);
}

static void load_watch(struct load_conn *lc)
{
	unsigned wants =
		lc->load->client->wants ? lc->load->client->wants(lc) : wire_wants(lc->wire);
	struct epoll_event ev = {.events = wants, .data.ptr = lc};
	int how = lc->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (wants == lc->watched)
		return;
	if (epoll_ctl(lc->load->epoll, how, lc->fd, &ev))
		die_errno("epoll_ctl");
	lc->watched = wants;
}

static int load_wait(struct load *l, struct epoll_event *events)
{
	int n;

	while ((n = epoll_wait(l->epoll, events, LOAD_EVENTS, -1)) < 0)
		if (errno != EINTR)
			die_errno("epoll_wait");
	return n;
}

/* Post each answered slot again; if `more` is false, only count it. */
static unsigned load_repost(struct load *l, bool more)
{
	unsigned ended = 0;

	for (unsigned i = 0; i < l->done_count; i++) {
		if (more)
			load_post(l->done[i].lc, l->done[i].slot);
		else
			ended++;
	}
	if (more)
		for (unsigned i = 0; i < l->done_count; i++)
			load_watch(l->done[i].lc);
	l->done_count = 0;
	return ended;
}

static void load_begin(struct load *l)
{
	samples_clear(l->samples);
	for (unsigned slot = 0; slot < l->c->depth; slot++)
		for (unsigned i = 0; i < l->c->conns; i++)
			load_post(&l->conns[i], (l->conns[i].oldest + slot) % l->c->depth);
	for (unsigned i = 0; i < l->c->conns; i++)
		load_watch(&l->conns[i]);
}

/* Keep all connections busy for `ns` nanoseconds, then wait for the writes under way. */
static uint64_t load_for(struct load *l, uint64_t ns)
{
	uint64_t begin = clock_now_ns(), now = begin;
	unsigned busy = l->c->conns * l->c->depth;
	struct epoll_event events[LOAD_EVENTS];

	for (load_begin(l); busy; now = clock_now_ns()) {
		int n = load_wait(l, events);

		for (int i = 0; i < n; i++) {
			struct load_conn *lc = events[i].data.ptr;

			l->client->service(lc, events[i].events);
			load_watch(lc);
		}
		busy -= load_repost(l, clock_now_ns() - begin < ns);
	}
	return now - begin;
}

static void *load_memory(size_t count, size_t size)
{
	void *mem = calloc(count, size);

	if (!mem)
		die_errno("memory");
	return mem;
}

static void load_open_conn(struct load_conn *lc)
{
	const struct load_client *client = lc->load->client;

	if (client->own)
		lc->own = load_memory(1, client->own);
	if (client->has_wire) {
		lc->wire = wire_open(lc->load->c->addr, lc->load->port);
		lc->fd = lc->wire->fd;
	}
	if (client->open)
		client->open(lc);
}

static void load_close_conn(struct load_conn *lc)
{
	const struct load_client *client = lc->load->client;

	if (client->close)
		client->close(lc);
	if (client->has_wire)
		wire_close(lc->wire);
	if (client->own)
		free(lc->own);
	free(lc->begun);
}

static void load_open(struct load *l)
{
	const struct bench_case *c = l->c;

	l->payload = payload_new(load_size(l));
	l->conns = load_memory(c->conns, sizeof(*l->conns));
	l->done = load_memory((size_t)c->conns * c->depth, sizeof(*l->done));
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		die_errno("epoll");
	for (unsigned i = 0; i < c->conns; i++) {
		struct load_conn *lc = &l->conns[i];

		*lc = (struct load_conn){.load = l, .number = i, .span = span_of_conn(c, i)};
		lc->begun = load_memory(c->depth, sizeof(*lc->begun));
		load_open_conn(lc);
	}
}

static void load_close(struct load *l)
{
	for (unsigned i = 0; i < l->c->conns; i++) {
		load_close_conn(&l->conns[i]);
	}
	close(l->epoll);
	free(l->conns);
	free(l->done);
	free(l->payload);
}

static void load_measure(struct load *l)
{
	struct result r = {0};

	load_open(l);
	load_for(l, case_warmup_ns(l->c));
	r.ns = load_for(l, case_ns(l->c));
	r.count = l->samples->total;
	r.bytes = r.count * l->c->size;
	load_close(l);
	if (l->client->stop)
		l->client->stop(l);
	result_print(l->c, &r, l->samples);
}

int load_main(const struct load_client *client, int argc, char **argv)
{
	struct bench_case c;
	struct load l = {.client = client, .c = &c, .samples = samples_new()};

	case_parse(&c, client->who, argc, argv);
	if (case_is_memory(&c))
		c.where = "server"; /* each write begins at least a page after the last */
	l.port = (unsigned short)c.port;
	if (client->start)
		client->start(&l);
	else
		ends_enter(&c, false);
	load_measure(&l);
	samples_delete(l.samples);
	return EXIT_SUCCESS;
}
