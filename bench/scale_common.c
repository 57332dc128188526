/* SPDX-License-Identifier: BSD-3-Clause */
/* scale_common.c -- queries the resources that a process has used, and makes the initiator's
 * connections. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "scale_impl.h"

_Noreturn void scale_die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

void scale_must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, rpma_err_2str(ret), rpma_err_last());
	exit(EXIT_FAILURE);
}

/* Returns the number that follows a word in a file of /proc, or 0 if the word is missing. */
static uint64_t scale_proc(const char *path, const char *word)
{
	char line[256];
	uint64_t n = 0;
	FILE *f = fopen(path, "re");
	char *at;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, word, strcspn(word, " ")) &&
		    (at = strstr(line, strrchr(word, ' ') + 1)))
			n = strtoull(at + strcspn(at, "0123456789"), NULL, 10);
	if (f)
		fclose(f);
	return n;
}

struct scale_usage scale_usage(void)
{
	struct scale_usage u = {.allocated = mallinfo2().uordblks};
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	u.cpu_ns = ((uint64_t)r.ru_utime.tv_sec + (uint64_t)r.ru_stime.tv_sec) * 1000000000u +
		   ((uint64_t)r.ru_utime.tv_usec + (uint64_t)r.ru_stime.tv_usec) * 1000u;
	u.switches = (uint64_t)r.ru_nvcsw;
	u.anonymous = scale_proc("/proc/self/status", "RssAnon: RssAnon") * 1024;
	u.socket_pages = scale_proc("/proc/net/sockstat", "TCP: mem");
	return u;
}

void scale_side_open(struct scale_side *s, int usage)
{
	struct ibv_context *dev;
	struct rpma_cq *cq;

	s->buf = mmap(NULL, SCALE_REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (s->buf == MAP_FAILED)
		scale_die("mmap");
	scale_must(rpma_utils_get_ibv_context("127.0.0.1", RPMA_UTIL_IBV_CONTEXT_LOCAL, &dev),
		   "device");
	scale_must(rpma_peer_new(dev, &s->peer), "peer");
	scale_must(rpma_mr_reg(s->peer, s->buf, SCALE_REGION, usage, &s->mr), "register");
	scale_must(rpma_cq_new(s->peer, 16, &cq), "queue");
	scale_must(rpma_conn_cfg_new(&s->shared), "configuration");
	scale_must(rpma_conn_cfg_set_cq(s->shared, cq), "configuration");
}

void scale_connect(const struct scale_side *s, const char *port, const struct rpma_conn_cfg *cfg,
		   struct scale_conn *c)
{
	struct rpma_conn_private_data pd;
	enum rpma_conn_event ev;
	struct rpma_conn_req *req;

	scale_must(rpma_conn_req_new(s->peer, "127.0.0.1", port, cfg, &req), "request");
	scale_must(rpma_conn_req_connect(&req, NULL, &c->conn), "connect");
	scale_must(rpma_conn_next_event(c->conn, &ev), "event");
	if (ev != RPMA_CONN_ESTABLISHED) {
		fprintf(stderr, "connect: %s\n", rpma_utils_conn_event_2str(ev));
		exit(EXIT_FAILURE);
	}
	scale_must(rpma_conn_get_private_data(c->conn, &pd), "private data");
	scale_must(rpma_mr_remote_from_descriptor(pd.ptr, pd.len, &c->at), "descriptor");
	scale_must(rpma_conn_get_cq(c->conn, &c->cq), "queue");
	c->pending = 0;
}

void scale_disconnect(struct scale_conn *c)
{
	enum rpma_conn_event ev;

	scale_must(rpma_mr_remote_delete(&c->at), "remote");
	scale_must(rpma_conn_disconnect(c->conn), "disconnect");
	scale_must(rpma_conn_next_event(c->conn, &ev), "event");
	scale_must(rpma_conn_delete(&c->conn), "delete");
}

void scale_post(const struct scale_side *s, struct scale_conn *c, size_t size)
{
	scale_must(rpma_write(c->conn, c->at, 0, s->mr, 0, size, RPMA_F_COMPLETION_ON_ERROR, NULL),
		   "write");
	scale_must(rpma_flush(c->conn, c->at, 0, size, RPMA_FLUSH_TYPE_VISIBILITY,
			      RPMA_F_COMPLETION_ALWAYS, NULL),
		   "flush");
	c->pending++;
}

unsigned scale_poll(struct scale_conn *c)
{
	struct ibv_wc wc;
	int n = 0, ret = rpma_cq_get_wc(c->cq, 1, &wc, &n);

	if (ret == RPMA_E_NO_COMPLETION)
		return 0;
	scale_must(ret, "completion");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "a completion has status %d\n", wc.status);
		exit(EXIT_FAILURE);
	}
	c->pending--;
	return 1;
}
