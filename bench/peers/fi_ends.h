/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fi_ends.h -- the two ends of an RMA measurement on libfabric. With the provider tcp the endpoints
 * are connected, because this costs least. With shm they are unconnected, because shm has no other
 * kind.
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
	struct fid_eq *eq;   /* used by connected endpoints only */
	struct fid_pep *pep; /* used by connected endpoints only: the target's listener */
	struct fid_av *av;   /* used by unconnected endpoints only */
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	fi_addr_t peer;
	char *mem;
	size_t size;
	/* address and key of the other end's memory */
	uint64_t addr, key;
};

/* End the program if ret is negative. */
void fi_must(long ret, const char *what);
/* flags: which kind of completions the program will request (FI_DELIVERY_COMPLETE ...). If the
 * provider does not have this kind, the case is skipped. */
void fi_end_open(struct fi_end *e, const struct bench_case *c, const char *provider, uint64_t flags,
		 size_t size, int fd, bool is_target);
void fi_end_close(struct fi_end *e);

#endif
