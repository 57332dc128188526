/* SPDX-License-Identifier: BSD-3-Clause */
/* The target offers memory, or the mapping of a file, to `conns` connections, and sends a report at
 * the end. */
#include <string.h>
#include <sys/mman.h>

#include "lib/die.h"
#include "lib/ends.h"
#include "lib/file.h"
#include "ours_impl.h"
#include "ours_report.h"

#define TARGET_USAGE                                                                               \
	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |                   \
	 RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |                                \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static char *ours_target_map(const struct bench_case *c, size_t size)
{
	int fd = case_is_memory(c) ? -1 : file_open(case_target_where(c), size);
	char *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	if (mem == MAP_FAILED)
		die_errno("map memory");
	if (fd < 0)
		memset(mem, 0, size); /* this allocates the pages, also those of a file */
	return mem;
}

static void ours_target_accept(struct ours *o, struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
			       const struct ours_target *t, unsigned index)
{
	struct rpma_conn **conn = &o->conns[index].conn;
	char desc[UINT8_MAX];
	struct rpma_conn_private_data pdata = {.ptr = desc};
	enum rpma_conn_event event;
	struct rpma_conn_req *req;
	size_t len;

	ours_must(rpma_mr_get_descriptor_size(o->mr, &len), "descriptor");
	ours_must(rpma_mr_get_descriptor(o->mr, desc), "descriptor");
	pdata.len = (uint8_t)len;
	ours_must(rpma_ep_next_conn_req(ep, cfg, &req), "wait for a connection");
	if (t->prepare)
		t->prepare(o, req, index);
	ours_must(rpma_conn_req_connect(&req, &pdata, conn), "accept");
	ours_must(rpma_conn_next_event(*conn, &event), "wait for the connection");
	if (event != RPMA_CONN_ESTABLISHED)
		die("the connection did not come: %s", rpma_utils_conn_event_2str(event));
}

static void ours_target_accept_all(struct ours *o, const struct ours_target *t, int fd)
{
	struct rpma_conn_cfg *cfg = ours_conn_cfg(o->c, o->cq);
	struct rpma_ep *ep;
	uint16_t port;

	ours_must(rpma_ep_listen(o->peer, o->c->addr, "0", &ep), "listen");
	ours_must(rpma_ep_get_port(ep, &port), "port");
	ends_put(fd, &port, sizeof(port));
	for (unsigned i = 0; i < o->c->conns; i++)
		ours_target_accept(o, ep, cfg, t, i);
	ours_must(rpma_ep_shutdown(&ep), "stop listening");
	ours_must(rpma_conn_cfg_delete(&cfg), "configuration");
}

static void ours_target_report(struct ours *o, int fd)
{
	struct ours_report report = {.writebacks = 0};
	char over;

	ours_must(rpma_utils_get_durability(o->mem, o->size, &report.durability, NULL, 0),
		  "durability");
	ends_get(fd, &over, sizeof(over));
	for (unsigned i = 0; i < o->c->conns; i++)
		report.writebacks += ours_counter(o->conns[i].conn, "writebacks");
	ends_put(fd, &report, sizeof(report));
}

void ours_target_run(const struct bench_case *c, int fd, void *arg)
{
	const struct ours_target *t = arg;
	size_t size = span_region(c);
	struct ours o;

	ours_environment(c, true);
	ours_open(&o, c, TARGET_USAGE, ours_target_map(c, size), size);
	ours_target_accept_all(&o, t, fd);
	if (t->serve)
		t->serve(&o, t->arg);
	ours_target_report(&o, fd);
	ends_wait_for_end(fd);
	ours_close(&o);
}
