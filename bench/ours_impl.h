/* SPDX-License-Identifier: BSD-3-Clause */
/* ours_impl.h -- librpma over softrnic: the ends of a measurement, and the measurements. */
#ifndef BENCH_OURS_IMPL_H
#define BENCH_OURS_IMPL_H

#include <librpma.h>

#include "lib/case.h"
#include "lib/result.h"
#include "lib/samples.h"
#include "lib/span.h"

/* If ret is not 0, print the failed call and librpma's reason, and exit. */
void ours_must(int ret, const char *what);
/* Call this before the first call of librpma in this process. */
void ours_environment(const struct bench_case *c, bool target);
struct rpma_conn_cfg *ours_conn_cfg(const struct bench_case *c, struct rpma_cq *cq);
/*
 * Take at least one and at most `max` completions; with `poll` never sleep. Returns false if the
 * last completion belongs to an operation that was flushed because the connection ended. Any other
 * failure ends the program.
 */
bool ours_completions(struct rpma_cq *cq, bool poll, struct ibv_wc *wc, int max, int *count);
/* Print the reason why the connection ended, and exit. wc: the completion of a flushed
 * operation. */
_Noreturn void ours_broke(const struct rpma_conn *conn, const struct ibv_wc *wc);

/* One end of a connection. */
struct ours_conn {
	struct rpma_conn *conn;
	struct rpma_mr_remote *there; /* used by the initiator only */
	struct rpma_batch *batch;     /* NULL if the work needs no batch */
	struct span span;
	uint64_t *begun; /* post time of each of the `depth` units under way */
	unsigned first;  /* index of the oldest unit */
};

/* One end of a measurement, in this process. */
struct ours {
	const struct bench_case *c;
	struct rpma_peer *peer;
	struct rpma_cq *cq;
	char *mem;
	size_t size;
	struct rpma_mr_local *mr;
	struct ours_conn *conns;
};

/* Open the objects that both ends need: the device, the queue, and memory registered for
 * `usage`. */
void ours_open(struct ours *o, const struct bench_case *c, int usage, char *mem, size_t size);
void ours_close(struct ours *o);

/* For the initiator: connect, and close in good order. *r gets the target's report. */
void ours_connect(struct ours *o, const struct bench_case *c, int fd);
void ours_disconnect(struct ours *o, int fd, struct result *r);

/* main function of the target's process; arg: struct ours_target. */
struct ours_target {
	/* The work of the target's program until the end. NULL: the program sleeps. */
	void (*serve)(struct ours *o, void *arg);
	/* Post receives before a connection is established. NULL: none are needed. */
	void (*prepare)(struct ours *o, struct rpma_conn_req *req, unsigned index);
	void *arg;
};
void ours_target_run(const struct bench_case *c, int fd, void *arg);

/* Each of these functions measures one case and prints its line. */
void ours_onesided(const struct bench_case *c);
void ours_send(const struct bench_case *c);
void ours_visible(const struct bench_case *c);

#endif
