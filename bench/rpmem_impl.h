/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmem_impl.h -- makes a target of librpmem for one measurement. */
#ifndef BENCH_RPMEM_IMPL_H
#define BENCH_RPMEM_IMPL_H

#include <stddef.h>

#include "lib/case.h"
#include "lib/ends.h"

#define RPMEM_SET "pool.set"

struct rpmem_target {
	struct ends ends;
	char folder[256];      /* folder with the pool set, its part, the secret and the log */
	char name[128];        /* the target's name, rpma://ADDR:PORT */
	char durability[16];   /* durability class of the pool */
	uint64_t writebacks;   /* sum over all lanes */
	uint64_t shm_rx_bytes; /* sum over all lanes */
};

/*
 * Make a folder with a pool set of one part, start rpmemd --listen, and set librpmem's variables in
 * this process.
 */
void rpmem_target_start(struct rpmem_target *t, const struct bench_case *c, size_t pool_size);
/*
 * End the target, read its counters from its log, and clean up. Call this when all pools are
 * closed.
 */
void rpmem_target_stop(struct rpmem_target *t);

#endif
