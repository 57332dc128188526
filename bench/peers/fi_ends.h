/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_ends.h -- the two ends of an RMA measurement on libfabric: over tcp connected endpoints, the
 * leanest kind there; over shm unconnected ones, the only kind.
 */
#ifndef BENCH_FI_ENDS_H
#define BENCH_FI_ENDS_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>

#include "lib/case.h"

struct fi_end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;   /* if connected: */
	struct fid_pep *pep; /* the target's listener */
	struct fid_av *av;   /* if unconnected */
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t peer;
	char *mem;
	size_t size;
	/* The other end's memory. */
	uint64_t addr, key;
};

/* Ends the program if ret is negative. */
void fi_must(long ret, const char *what);
/* flags: the completions that will be asked for (FI_DELIVERY_COMPLETE ...); the program skips if
 * the provider has none of that kind. */
void fi_end_open(struct fi_end *e, const struct bench_case *c, const char *provider, uint64_t flags,
		 size_t size, int fd, bool is_target);
void fi_end_close(struct fi_end *e);

#endif
