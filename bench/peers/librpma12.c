/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * librpma12 -- repeats functions of librpma 1.2. It is built with the distribution's header, so it
 * runs with both libraries: with the distribution's library over the interposer, and with this
 * project's library.
 *
 * The variable OPERATIONS sets a number of units instead of a time. A completion is taken when it
 * has certainly arrived, so that polls of an empty queue add no instructions.
 */
#include <librpma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/file.h"
#include "lib/result.h"
#include "lib/samples.h"
#include "lib/span.h"

#define L12_PORT_MAX  16
#define L12_SETTLE_US 3000
#define L12_DESC_MAX  64

/* Message of the target: its port, and then the descriptors of its memory and configuration. */
struct l12_memory {
	size_t mr_len, pcfg_len;
	char mr[L12_DESC_MAX], pcfg[L12_DESC_MAX];
};

struct l12 {
	const struct bench_case *c;
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *there;
	struct span span;
	char *mem;
	struct samples *samples;
	uint64_t *begun;
	unsigned pause_us; /* microseconds between two polls of an empty queue */
};

static void l12_must(int ret, const char *what)
{
	if (ret)
		die("%s: %s", what, rpma_err_2str(ret));
}

static char *l12_map(const struct bench_case *c, size_t size, bool target)
{
	bool file = target && !case_is_memory(c);
	int fd = file ? file_open(c->where, size) : -1;
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 (file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_POPULATE, fd, 0);

	if (mem == MAP_FAILED)
		die_errno("memory");
	return mem;
}

static void l12_open(struct l12 *l, enum rpma_util_ibv_context_type type, int usage)
{
	struct ibv_context *device;

	l->span = span_of(l->c);
	l->mem = l12_map(l->c, l->span.size, type == RPMA_UTIL_IBV_CONTEXT_LOCAL);
	l12_must(rpma_utils_get_ibv_context(l->c->addr, type, &device), "device");
	l12_must(rpma_peer_new(device, &l->peer), "peer");
	l12_must(rpma_mr_reg(l->peer, l->mem, l->span.size, usage, &l->mr), "register memory");
}

static void l12_close(struct l12 *l)
{
	l12_must(rpma_conn_delete(&l->conn), "delete the connection");
	l12_must(rpma_mr_dereg(&l->mr), "deregister memory");
	l12_must(rpma_peer_delete(&l->peer), "delete the peer");
	munmap(l->mem, l->span.size);
}

static void l12_expect(struct l12 *l, enum rpma_conn_event want)
{
	enum rpma_conn_event event;

	l12_must(rpma_conn_next_event(l->conn, &event), "event");
	if (event != want)
		die("event \"%s\"", rpma_utils_conn_event_2str(event));
}

/* Declare direct write, because the distribution's library otherwise refuses persistent flushes. */
static void l12_offer(struct l12 *l, int fd)
{
	struct l12_memory m = {0};
	struct rpma_peer_cfg *pcfg;

	l12_must(rpma_peer_cfg_new(&pcfg), "configuration");
	l12_must(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true), "configuration");
	l12_must(rpma_peer_cfg_get_descriptor_size(pcfg, &m.pcfg_len), "descriptor");
	l12_must(rpma_mr_get_descriptor_size(l->mr, &m.mr_len), "descriptor");
	if (m.mr_len > sizeof(m.mr) || m.pcfg_len > sizeof(m.pcfg))
		die("a descriptor is too long");
	l12_must(rpma_peer_cfg_get_descriptor(pcfg, m.pcfg), "descriptor");
	l12_must(rpma_mr_get_descriptor(l->mr, m.mr), "descriptor");
	l12_must(rpma_peer_cfg_delete(&pcfg), "configuration");
	ends_put(fd, &m, sizeof(m));
}

static void l12_take_offer(struct l12 *l, int fd)
{
	struct rpma_peer_cfg *pcfg;
	struct l12_memory m;

	ends_get(fd, &m, sizeof(m));
	l12_must(rpma_peer_cfg_from_descriptor(m.pcfg, m.pcfg_len, &pcfg), "configuration");
	l12_must(rpma_conn_apply_remote_peer_cfg(l->conn, pcfg), "configuration");
	l12_must(rpma_peer_cfg_delete(&pcfg), "configuration");
	l12_must(rpma_mr_remote_from_descriptor(m.mr, m.mr_len, &l->there), "memory");
}

/* Version 1.2 cannot report a port that the system chose, so try several ports. */
static struct rpma_ep *l12_listen(struct l12 *l, char *port)
{
	struct rpma_ep *ep;

	srand((unsigned)getpid());
	for (int i = 0; i < 100; i++) {
		snprintf(port, L12_PORT_MAX, "%d", 19000 + rand() % 10000);
		if (!rpma_ep_listen(l->peer, l->c->addr, port, &ep))
			return ep;
	}
	die("no port is free");
}

static void l12_target(const struct bench_case *c, int fd, void *arg)
{
	char port[L12_PORT_MAX] = "";
	struct l12 l = {.c = c};
	struct rpma_conn_req *req;
	struct rpma_ep *ep;

	(void)arg;
	l12_open(&l, RPMA_UTIL_IBV_CONTEXT_LOCAL,
		 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
			 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	ep = l12_listen(&l, port);
	ends_put(fd, port, sizeof(port));
	l12_must(rpma_ep_next_conn_req(ep, NULL, &req), "request");
	l12_must(rpma_conn_req_connect(&req, NULL, &l.conn), "connect");
	l12_expect(&l, RPMA_CONN_ESTABLISHED);
	l12_offer(&l, fd);
	ends_wait_for_end(fd);
	l12_must(rpma_conn_disconnect(l.conn), "disconnect");
	l12_must(rpma_ep_shutdown(&ep), "endpoint");
	l12_close(&l);
}

static void l12_connect(struct l12 *l, int fd)
{
	uint32_t depth = l->c->depth * (l->c->every + 1) + 8;
	char port[L12_PORT_MAX];
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;

	ends_get(fd, port, sizeof(port));
	l12_open(l, RPMA_UTIL_IBV_CONTEXT_REMOTE, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST);
	l12_must(rpma_conn_cfg_new(&cfg), "configuration");
	l12_must(rpma_conn_cfg_set_sq_size(cfg, depth), "configuration");
	l12_must(rpma_conn_cfg_set_cq_size(cfg, depth), "configuration");
	l12_must(rpma_conn_req_new(l->peer, l->c->addr, port, cfg, &req), "request");
	l12_must(rpma_conn_cfg_delete(&cfg), "configuration");
	l12_must(rpma_conn_req_connect(&req, NULL, &l->conn), "connect");
	l12_expect(l, RPMA_CONN_ESTABLISHED);
	l12_must(rpma_conn_get_cq(l->conn, &l->cq), "queue");
	l12_take_offer(l, fd);
}

static void l12_disconnect(struct l12 *l, int fd)
{
	shutdown(fd, SHUT_WR);
	rpma_conn_disconnect(l->conn);
	l12_must(rpma_mr_remote_delete(&l->there), "memory");
	l12_close(l);
}

static void l12_post(struct l12 *l, uint64_t *begun)
{
	enum rpma_flush_type type =
		case_is_persistent(l->c) ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
	size_t first = l->span.at, at = first, size = l->c->size;

	*begun = clock_now_ns();
	if (case_is_work(l->c, "read")) {
		at = span_next(&l->span);
		l12_must(rpma_read(l->conn, l->mr, at, l->there, at, size, RPMA_F_COMPLETION_ALWAYS,
				   begun),
			 "read");
		return;
	}
	for (unsigned i = 0; i < l->c->every; i++) {
		at = span_next(&l->span);
		l12_must(rpma_write(l->conn, l->there, at, l->mr, at, size,
				    RPMA_F_COMPLETION_ON_ERROR, begun),
			 "write");
	}
	l12_must(rpma_flush(l->conn, l->there, first, at - first + size, type,
			    RPMA_F_COMPLETION_ALWAYS, begun),
		 "flush");
}

static uint64_t *l12_next(struct l12 *l)
{
	struct ibv_wc wc;
	int ret;

	while ((ret = rpma_cq_get_wc(l->cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		if (l->pause_us)
			usleep(l->pause_us);
		else if (!l->c->ini_polls && (ret = rpma_cq_wait(l->cq)) != RPMA_E_NO_COMPLETION)
			l12_must(ret, "wait");
	l12_must(ret, "completion");
	if (wc.status != IBV_WC_SUCCESS)
		die("an operation failed: %s", ibv_wc_status_str(wc.status));
	return (uint64_t *)(uintptr_t)wc.wr_id;
}

static uint64_t l12_for(struct l12 *l, uint64_t ns)
{
	uint64_t begin = clock_now_ns(), now = begin;
	unsigned busy = l->c->depth;

	samples_clear(l->samples);
	for (unsigned i = 0; i < l->c->depth; i++)
		l12_post(l, &l->begun[i]);
	while (busy) {
		uint64_t *begun = l12_next(l);

		now = clock_now_ns();
		samples_add(l->samples, now - *begun);
		if (now - begin < ns)
			l12_post(l, begun);
		else
			busy--;
	}
	return now - begin;
}

static uint64_t l12_counted(struct l12 *l, unsigned operations)
{
	uint64_t begin = clock_now_ns();

	/* Without a pause this loop would poll thousands of times, and more often on a busy
	 * machine. */
	l->pause_us = L12_SETTLE_US;
	for (unsigned i = 0; i < operations; i++) {
		l12_post(l, l->begun);
		usleep(l->pause_us);
		samples_add(l->samples, clock_now_ns() - *l12_next(l));
	}
	return clock_now_ns() - begin;
}

static const char *l12_who(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strncmp(argv[i], "who=", 4) == 0)
			return argv[i] + 4;
	die("who= is missing");
}

int main(int argc, char **argv)
{
	const char *operations = getenv("OPERATIONS");
	struct result r = {0};
	struct bench_case c;
	struct ends e;
	struct l12 l = {.c = &c, .samples = samples_new()};

	case_parse(&c, l12_who(argc, argv), argc, argv);
	l.begun = calloc(c.depth, sizeof(*l.begun));
	ends_start(&e, &c, l12_target, NULL);
	l12_connect(&l, e.fd);
	if (operations) {
		r.ns = l12_counted(&l, (unsigned)atoi(operations));
	} else {
		l12_for(&l, case_warmup_ns(&c));
		r.ns = l12_for(&l, case_ns(&c));
	}
	r.count = l.samples->total * (case_is_work(&c, "write") ? c.every : 1);
	r.bytes = l.samples->total * c.every * c.size;
	l12_disconnect(&l, e.fd);
	ends_finish(&e);
	result_print(&c, &r, l.samples);
	samples_delete(l.samples);
	free(l.begun);
	return EXIT_SUCCESS;
}
