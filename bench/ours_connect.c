/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and closes the initiator's connections. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/die.h"
#include "lib/ends.h"
#include "ours_impl.h"
#include "ours_report.h"

#define CONNECT_USAGE                                                                              \
	(RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV)
#define COUNTERS_MAX 128

uint64_t ours_counter(const struct rpma_conn *conn, const char *name)
{
	struct rpma_counter counters[COUNTERS_MAX];
	size_t count = COUNTERS_MAX;

	ours_must(rpma_conn_get_counters(conn, counters, &count), "counters");
	for (size_t i = 0; i < count && i < COUNTERS_MAX; i++)
		if (strcmp(counters[i].name, name) == 0)
			return counters[i].value;
	return 0;
}

static char *ours_connect_map(size_t size)
{
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		die_errno("map memory");
	memset(mem, 0x5a, size);
	return mem;
}

static void ours_conn_prepare(struct ours_conn *oc, const struct bench_case *c, unsigned number)
{
	struct rpma_conn_private_data pdata;

	ours_must(rpma_conn_get_private_data(oc->conn, &pdata), "private data");
	ours_must(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &oc->there), "descriptor");
	if (case_is_work(c, "batch"))
		ours_must(rpma_batch_new(oc->conn, c->every + 1, &oc->batch), "batch");
	oc->span = span_of_conn(c, number);
	oc->begun = calloc(c->depth, sizeof(*oc->begun));
	if (!oc->begun)
		die_errno("memory");
}

void ours_connect(struct ours *o, const struct bench_case *c, int fd)
{
	size_t size = span_region(c);
	struct rpma_conn_open_attr attr = {.size = sizeof(attr), .addr = c->addr};
	enum rpma_conn_event event;
	struct rpma_conn_cfg *cfg;
	char port[8];
	uint16_t number;

	ours_environment(c, false);
	ours_open(o, c, CONNECT_USAGE, ours_connect_map(size), size);
	ends_get(fd, &number, sizeof(number));
	snprintf(port, sizeof(port), "%u", number);
	cfg = ours_conn_cfg(c, o->cq);
	attr.port = port;
	attr.cfg = cfg;
	for (unsigned i = 0; i < c->conns; i++) {
		ours_must(rpma_conn_open(o->peer, &attr, &event, &o->conns[i].conn), "connect");
		if (event != RPMA_CONN_ESTABLISHED)
			die("connect: %s", rpma_utils_conn_event_2str(event));
		ours_conn_prepare(&o->conns[i], c, i);
	}
	ours_must(rpma_conn_cfg_delete(&cfg), "configuration");
}

/*
 * Check which link the ends have chosen for the connection, because a result for another link
 * misleads.
 */
static void ours_check_link(const struct ours *o)
{
	bool wanted = strcmp(o->c->link, "shm") == 0;

	for (unsigned i = 0; i < o->c->conns; i++)
		if (wanted && !ours_counter(o->conns[i].conn, "shm_tx_bytes"))
			skip("link=shm: the connection went over TCP");
}

void ours_disconnect(struct ours *o, int fd, struct result *r)
{
	struct ours_report report;
	enum rpma_conn_event event;
	char over = 1;

	ours_check_link(o);
	for (unsigned i = 0; i < o->c->conns; i++)
		ours_must(rpma_conn_disconnect(o->conns[i].conn), "disconnect");
	for (unsigned i = 0; i < o->c->conns; i++)
		ours_must(rpma_conn_next_event(o->conns[i].conn, &event), "wait for the end");
	ends_put(fd, &over, sizeof(over));
	ends_get(fd, &report, sizeof(report));
	r->durability = rpma_utils_durability_2str(report.durability);
	r->writebacks = report.writebacks;
	ours_close(o);
}
