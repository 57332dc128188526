/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_end.h -- two ends that make the calls of NCCL's network module net_ib.
 *
 * The code is written from the list of calls that the module makes, and shares no code with it. It
 * loads libibverbs by name, looks up each call under its version, and posts and polls through the
 * context's table.
 */
#ifndef INTEROP_NCCL_END_H
#define INTEROP_NCCL_END_H

#include <infiniband/verbs.h>

/* verbs.h defines these names as macros; the structure has members of these names. */
#undef ibv_query_port
#undef ibv_reg_mr

/* The calls that the module requires, each with its version node. */
#define NEEDED(X)                                                                                  \
	X("IBVERBS_1.1", ibv_get_device_list)                                                      \
	X("IBVERBS_1.1", ibv_free_device_list)                                                     \
	X("IBVERBS_1.1", ibv_get_device_name)                                                      \
	X("IBVERBS_1.1", ibv_open_device)                                                          \
	X("IBVERBS_1.1", ibv_close_device)                                                         \
	X("IBVERBS_1.1", ibv_get_async_event)                                                      \
	X("IBVERBS_1.1", ibv_ack_async_event)                                                      \
	X("IBVERBS_1.1", ibv_query_device)                                                         \
	X("IBVERBS_1.1", ibv_query_port)                                                           \
	X("IBVERBS_1.1", ibv_query_gid)                                                            \
	X("IBVERBS_1.1", ibv_query_qp)                                                             \
	X("IBVERBS_1.1", ibv_alloc_pd)                                                             \
	X("IBVERBS_1.1", ibv_dealloc_pd)                                                           \
	X("IBVERBS_1.1", ibv_reg_mr)                                                               \
	X("IBVERBS_1.1", ibv_dereg_mr)                                                             \
	X("IBVERBS_1.1", ibv_create_cq)                                                            \
	X("IBVERBS_1.1", ibv_destroy_cq)                                                           \
	X("IBVERBS_1.1", ibv_create_qp)                                                            \
	X("IBVERBS_1.1", ibv_modify_qp)                                                            \
	X("IBVERBS_1.1", ibv_destroy_qp)                                                           \
	X("IBVERBS_1.1", ibv_fork_init)                                                            \
	X("IBVERBS_1.1", ibv_event_type_str)
/* The calls that the module uses only if they exist. */
#define OPTIONAL(X)                                                                                \
	X("IBVERBS_1.8", ibv_reg_mr_iova2)                                                         \
	X("IBVERBS_1.10", ibv_query_ece)                                                           \
	X("IBVERBS_1.10", ibv_set_ece)                                                             \
	X("IBVERBS_1.12", ibv_reg_dmabuf_mr)

extern struct nccl_verbs {
	void *lib;
#define MEMBER(version, name) __typeof__(name) *name;
	NEEDED(MEMBER)
	OPTIONAL(MEMBER)
} verbs;

/* Look up all calls. The test fails if a needed call is missing. */
void nccl_load_verbs(void);

struct device {
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
};

void device_open(struct device *d);
void device_close(struct device *d);

enum {
	REQUESTS = 32,    /* messages that can be outstanding at the same time */
	AT_ONCE = 3,      /* messages that one call can send */
	MESSAGE = 1 << 20 /* size of the largest message */
};

/* The receiver's offer of memory, which it writes into the sender's memory. */
struct slot {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size, count;
	volatile uint64_t number; /* number of the message; the receiver writes it last */
};

/* One end. The sender has `slots` and `data`. The receiver has `data`, `flush`, and the slots that
 * it writes to the sender. */
struct end {
	struct device device;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
	struct slot slots[REQUESTS][AT_ONCE];
	struct ibv_mr *slots_mr;
	char *data;
	struct ibv_mr *data_mr;
	/* the receiver's second queue pair, for flushes */
	struct ibv_qp *flush_qp; /* connected to itself */
	int flush_word;
	struct ibv_mr *flush_mr;
};

struct pair {
	struct end sender, receiver;
	uint64_t number; /* number of the last message of this end */
};

/* Make and connect both ends. Each end has a context of its own, as two processes would. */
void pair_connect(struct pair *p);
void pair_close(struct pair *p);

#endif
