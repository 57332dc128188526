/* SPDX-License-Identifier: BSD-3-Clause */
/* ours_impl.h -- librpma over softrnic: the ends of a
 * measurement, and what is measured with them. */
#ifndef BENCH_OURS_IMPL_H
#define BENCH_OURS_IMPL_H

#include <librpma.h>

#include "lib/case.h"
#include "lib/result.h"
#include "lib/samples.h"
#include "lib/span.h"

/* Exit with what failed and librpma's reason unless ret is 0. */
void ours_must(int ret, const char *what);
/* Before the first call of librpma in this process. */
void ours_environment(const struct bench_case *c, bool target);
struct rpma_conn_cfg *ours_conn_cfg(const struct bench_case *c, struct rpma_cq *cq);
/* Entries of the one queue in which all connections complete. */
uint32_t ours_cq_size(const struct bench_case *c);
/*
 * Up to max completions, at least one. poll: never sleep. False: the last of them is of an
 * operation that was flushed, as the connection has ended; any other failure ends the program.
 */
bool ours_completions(struct rpma_cq *cq, bool poll, struct ibv_wc *wc, int max, int *count);
/* Exit with why the connection ended; wc: one of its flushed operations. */
_Noreturn void ours_broke(const struct rpma_conn *conn, const struct ibv_wc *wc);

/* One end of a connection. */
struct ours_conn {
	struct rpma_conn *conn;
	struct rpma_mr_remote *there; /* the initiator's */
	struct rpma_batch *batch;     /* where the work needs one */
	struct span span;
	uint64_t *begun; /* when each of the `depth` units under way was posted */
	unsigned first;  /* the oldest of them */
};

/* An end: everything of it, in this process. */
struct ours {
	const struct bench_case *c;
	struct rpma_peer *peer;
	struct rpma_cq *cq;
	char *mem;
	size_t size;
	struct rpma_mr_local *mr;
	struct ours_conn *conns;
};

/* What both ends have: the device, the queue, memory that is registered for `usage`. */
void ours_open(struct ours *o, const struct bench_case *c, int usage, char *mem, size_t size);
void ours_close(struct ours *o);

/* The initiator's side: connect, and end in good order; the target's report goes into *r. */
void ours_connect(struct ours *o, const struct bench_case *c, int fd);
void ours_disconnect(struct ours *o, int fd, struct result *r);

/* The target's process; arg: struct ours_target. */
struct ours_target {
	/* What its program does until the work is over; NULL: it sleeps. */
	void (*serve)(struct ours *o, void *arg);
	/* Receives are to be posted before a connection stands; NULL: none. */
	void (*prepare)(struct ours *o, struct rpma_conn_req *req, unsigned index);
	void *arg;
};
void ours_target_run(const struct bench_case *c, int fd, void *arg);

/* Each measures one case and prints its line. */
void ours_onesided(const struct bench_case *c);
void ours_send(const struct bench_case *c);
void ours_visible(const struct bench_case *c);

#endif
