/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_end.h -- two ends of NCCL's network module net_ib, replayed.
 *
 * They are written from what that module calls, and share no code with it: verbs is loaded by name,
 * each call is looked up under its version, and the data path goes through the context's table.
 */
#ifndef INTEROP_NCCL_END_H
#define INTEROP_NCCL_END_H

#include <infiniband/verbs.h>

/* verbs.h has macros of these names; here the names are members. */
#undef ibv_query_port
#undef ibv_reg_mr

/* Each call that the module needs, with the call's version node. */
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
/* The module uses these calls if they exist. */
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

/* Look up the calls. The test fails if a call is missing. */
void nccl_load_verbs(void);

struct device {
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
};

void device_open(struct device *d);
void device_close(struct device *d);

enum {
	REQUESTS = 32,    /* messages that may be under way */
	AT_ONCE = 3,      /* messages that one call may send, at most */
	MESSAGE = 1 << 20 /* the largest message */
};

/* The receiver's offer, written into the sender's memory. */
struct slot {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size, count;
	volatile uint64_t number; /* number of the message; written last */
};

/* One end. The sender has `slots` and `data`; the receiver has `data`, `flush` and the slots
 * that it writes. */
struct end {
	struct device device;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
	struct slot slots[REQUESTS][AT_ONCE];
	struct ibv_mr *slots_mr;
	char *data;
	struct ibv_mr *data_mr;
	/* the receiver's queue pair */
	struct ibv_qp *flush_qp; /* connected with itself */
	int flush_word;
	struct ibv_mr *flush_mr;
};

struct pair {
	struct end sender, receiver;
	uint64_t number; /* number of the last message */
};

/* Make and connect both ends. Each end has a context of its own, as if in two processes. */
void pair_connect(struct pair *p);
void pair_close(struct pair *p);

#endif
