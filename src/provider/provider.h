/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * provider.h -- the interface between librpma and the implementations of verbs and rdma_cm.
 *
 * A provider is a constant table of the calls of verbs and rdma_cm. Each member has the signature,
 * the return convention and the meaning of rdma-core's call with the same name. librpma chooses a
 * table once for each peer; the rest of its code is the same for all tables. The data path needs no
 * table: it is called through the ops of a context.
 */
#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "verbs_ext/calls.h"
#include "verbs_ext/verbs_ext.h"

/* Rows in the form of verbs_ext/calls.h, for calls that only this table has. */
/* clang-format off */
#define PROVIDER_ADDR_CALLS(X)                                                                     \
	X(int, getaddrinfo,                                                                        \
	  (const char *node, const char *service, const struct rdma_addrinfo *hints,               \
	   struct rdma_addrinfo **res),                                                            \
	  (node, service, hints, res), NEG, CALL)                                                  \
	X(void, freeaddrinfo, (struct rdma_addrinfo *res), (res), VOID, RELEASE)

#define PROVIDER_DEVICE_CALLS(X)                                                                   \
	X(int, query_device_ex,                                                                    \
	  (struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,                    \
	   struct ibv_device_attr_ex *attr),                                                       \
	  (ctx, in, attr), ERR, CALL)                                                              \
	X(int, advise_mr,                                                                          \
	  (struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,                    \
	   struct ibv_sge *sges, uint32_t num_sge),                                                \
	  (pd, advice, flags, sges, num_sge), ERR, CALL)

/*
 * Calls beyond rdma_cm. set_limits() sets the time limit of the whole connect (0: default), and the
 * silence after which the peer counts as lost (0: default, -1: never). It must be called before
 * connect or accept. set_owner() must be called before connect; it names the owner, and the target
 * closes connections that other processes made for the same owner. cancel_connect() may be called
 * from any thread; an UNREACHABLE event follows, unless the outcome was already known. abandon()
 * must be called before the queue pair and the id are destroyed. If no disconnect was begun, the
 * connection then sends nothing more, as far as the device can prevent sending. wait_X() does the
 * same as get_X(), but with a time limit (-1: for ever), whether or not the descriptor is
 * non-blocking; after the limit errno is ETIMEDOUT.
 */
#define PROVIDER_LIFE_CALLS(X)                                                                     \
	X(int, set_limits, (struct rdma_cm_id *id, int connect_ms, int liveness_ms),               \
	  (id, connect_ms, liveness_ms), ERR, CALL)                                                \
	X(int, set_owner, (struct rdma_cm_id *id, const void *name, size_t len), (id, name, len),  \
	  ERR, CALL)                                                                               \
	X(int, cancel_connect, (struct rdma_cm_id *id), (id), ERR, CALL)                           \
	X(void, abandon, (struct rdma_cm_id * id), (id), VOID, RELEASE)                            \
	X(int, wait_cm_event,                                                                      \
	  (struct rdma_event_channel *ch, int timeout_ms, struct rdma_cm_event **ev),              \
	  (ch, timeout_ms, ev), NEG, CALL)                                                         \
	X(int, wait_cq_event,                                                                      \
	  (struct ibv_comp_channel *ch, int timeout_ms, struct ibv_cq **cq, void **cq_context),    \
	  (ch, timeout_ms, cq, cq_context), NEG, CALL)

/*
 * Calls beyond verbs. post_list() posts several work requests in the order of the list. The caller
 * must set *posted to 0 before the call, which sets it to the number of accepted requests.
 */
#define PROVIDER_EXT_CALLS(X)                                                                      \
	X(int, post_list,                                                                          \
	  (struct ibv_qp *qp, const struct vext_wr *wrs, int n, int *posted),                      \
	  (qp, wrs, n, posted), ERR, CALL)

#define PROVIDER_CALLS(X)                                                                          \
	VEXT_CM_CALLS(X)                                                                           \
	VEXT_VERBS_CALLS(X)                                                                        \
	PROVIDER_ADDR_CALLS(X)                                                                     \
	PROVIDER_DEVICE_CALLS(X)                                                                   \
	PROVIDER_LIFE_CALLS(X)                                                                     \
	PROVIDER_EXT_CALLS(X)
/* clang-format on */

/* The end of the connection to which the address belongs. */
enum provider_role { PROVIDER_PASSIVE, PROVIDER_ACTIVE };

struct provider {
	const char *name;
	bool (*owns_context)(const struct ibv_context *ctx);
	/* Can the provider serve this address? `why` gets the reason as a clause. */
	bool (*serves)(const char *addr, enum provider_role role, char *why, size_t why_len);
	const char *(*event_str)(enum rdma_cm_event_type event);
	/* Access rights, beyond local write, that memory needs as the sink of a Read. */
	int (*read_sink_access)(const struct ibv_context *ctx);
	/* Does vendor_err of a failed completion contain a vext_reason and its code? */
	bool (*gives_reasons)(const struct ibv_context *ctx);
	/* Returns which end rejected the connection, from an event of type REJECTED. */
	enum vext_rejection (*rejection)(const struct rdma_cm_event *ev);
	/* Returns the operations that the peer supports, as VEXT_CAP_* flags. The call is cheap.
	 * Its result is valid from ESTABLISHED on. */
	uint32_t (*qp_caps)(struct ibv_qp *qp);
	/*
	 * Returns the number of counters of a connection, and writes at most `max` of them. Returns
	 * -1 if this provider has no counters.
	 */
	int (*qp_counters)(struct ibv_qp *qp, const char *const **names, uint64_t *values, int max);
#define PROVIDER_MEMBER(ret, name, params, args, failure, act) ret(*name) params;
	PROVIDER_CALLS(PROVIDER_MEMBER)
#undef PROVIDER_MEMBER
};

extern const struct provider provider_stubs;    /* every call fails, because it is not supported */
extern const struct provider provider_verbs;    /* rdma-core: hardware, siw, rxe */
extern const struct provider provider_softrnic; /* the software RNIC in this process */

/*
 * Returns the provider for an address. RPMA_PROVIDER (auto, verbs, softrnic, fault) influences the
 * choice. Returns NULL if no provider serves the address; the reason is logged then.
 */
const struct provider *provider_for_addr(const char *addr, enum provider_role role);
/* Returns the provider with this name, or NULL if provider_names() does not contain the name. */
const struct provider *provider_named(const char *name);
const char *provider_names(void);
/* Returns the provider that made a context. For a context that no provider made, returns
 * rdma-core's provider. */
const struct provider *provider_of_context(struct ibv_context *ctx);

/*
 * Give an id its address: bind the id (PASSIVE), or find the device and the route to the address
 * (ACTIVE). port NULL means no port. Returns 0 or an errno value; *call is the name of the failed
 * call of rdma-core then.
 */
int provider_address_id(const struct provider *prov, struct rdma_cm_id *id, const char *addr,
			const char *port, enum provider_role role, int timeout_ms,
			const char **call);
/* Find the device for an address. The device stays open. Returns 0 or an errno value; *call is the
 * name of the failed call of rdma-core then. */
int provider_find_context(const struct provider *prov, const char *addr, enum provider_role role,
			  struct ibv_context **ctx, const char **call);

/* One device, or a provider without a device, with the reason why the device or provider can or
 * cannot be used. */
struct provider_row {
	const char *provider;
	char device[64]; /* "": the provider has no device */
	bool usable;
	char why[256];
};
struct provider_rows {
	size_t count;
	struct provider_row *row;
};
/* Make the list of rows for an address; addr NULL makes the list without regard to an address.
 * Returns 0 or an errno value. */
int provider_rows_init(struct provider_rows *rows, const char *addr, enum provider_role role);
void provider_rows_fini(struct provider_rows *rows);

/*
 * Pass the log messages of providers, down to `level`, to `sink`: see softrnic_log_set(). The
 * provider for rdma-core logs nothing.
 */
void provider_log_set(log_sink *sink, enum log_level level);

/* Calls softrnic_durability(). The result holds for every provider. */
int provider_durability(const void *addr, size_t len, uint32_t *cls, char *why, size_t why_size);

/* Returns a positive errno value. The parts of rdma-core for some devices (siw's, in release 44)
 * return a negative errno instead. */
static inline int provider_errno(int err)
{
	return err < 0 ? -err : err;
}

/* The calls of the data path. They return 0 or an errno value, like ibv_post_send(). */
static inline int provider_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	return provider_errno(qp->context->ops.post_send(qp, wr, &bad));
}

static inline int provider_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	/*
	 * A QP with an SRQ has no receive queue. libsiw does not check this, and writes to an
	 * invalid address.
	 */
	if (qp->srq)
		return EINVAL;
	return provider_errno(qp->context->ops.post_recv(qp, wr, &bad));
}

static inline int provider_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	return provider_errno(srq->context->ops.post_srq_recv(srq, wr, &bad));
}

/* Returns the number of completions, or a negative value on failure. */
static inline int provider_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	return cq->context->ops.poll_cq(cq, num_entries, wc);
}

static inline int provider_req_notify_cq(struct ibv_cq *cq)
{
	return cq->context->ops.req_notify_cq(cq, 0);
}

#endif
