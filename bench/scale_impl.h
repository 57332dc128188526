/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scale_impl.h -- declarations that the scale*.c files share: the two processes, and connections
 * between them.
 */
#ifndef BENCH_SCALE_IMPL_H
#define BENCH_SCALE_IMPL_H

#include <librpma.h>
#include <stdint.h>

#define SCALE_REGION (1u << 20)

/* The resources that a process has used so far. */
struct scale_usage {
	uint64_t cpu_ns;
	uint64_t allocated;    /* bytes allocated by malloc(3) */
	uint64_t anonymous;    /* bytes of resident memory that no file backs */
	uint64_t switches;     /* number of times that a thread has waited */
	uint64_t socket_pages; /* pages in TCP buffers of the whole machine */
};

_Noreturn void scale_die(const char *what);
/* ends the program if ret, a return code of librpma, is an error */
void scale_must(int ret, const char *what);
struct scale_usage scale_usage(void);

/* --- the target, which is a child process */

struct scale_target {
	int to, from;
	char port[8];
};
void scale_target_start(struct scale_target *t);
struct scale_usage scale_target_usage(struct scale_target *t);
void scale_target_stop(struct scale_target *t);

/* --- the initiator */

struct scale_side { /* objects of this process */
	struct rpma_peer *peer;
	struct rpma_mr_local *mr;
	char *buf;
	/* configuration of connections that share one completion queue */
	struct rpma_conn_cfg *shared;
};
void scale_side_open(struct scale_side *s, int usage);

struct scale_conn {
	struct rpma_conn *conn;
	struct rpma_mr_remote *at;
	struct rpma_cq *cq;
	unsigned pending;
};
/*
 * Connect. cfg: NULL, or s->shared; with s->shared the connection has one descriptor less, and is
 * not polled.
 */
void scale_connect(const struct scale_side *s, const char *port, const struct rpma_conn_cfg *cfg,
		   struct scale_conn *c);
void scale_disconnect(struct scale_conn *c);
/* Post a write of `size` bytes and a flush of them. Only the flush has a completion. */
void scale_post(const struct scale_side *s, struct scale_conn *c, size_t size);
unsigned scale_poll(struct scale_conn *c); /* returns the number of completions taken */

#endif
