/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * newer.c -- calls that rdma-core has only after release 44. The library contains these calls only
 * if it is built with the headers of such a release (CMakeLists.txt).
 *
 * The software RNIC supports only the calls for buffers that are allocated for registration. It
 * refuses the other calls, like a device without the feature.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interposer/ops.h"
#include "interposer/shim_id.h"
#include "softrnic/softrnic.h"

struct ibv_mr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_comp_cntr;
struct ibv_comp_cntr_init_attr;
struct ibv_comp_cntr_caps;
struct ibv_qp_attach_comp_cntr_attr;

/* Every object of rdma-core except a context begins with a pointer to its context. */
#define OF_CONTEXT(object) (object)
#define OF_OBJECT(object)  (*(struct ibv_context *const *)(const void *)(object))

/* Columns: result type, name, parameters, arguments, result of a failure, context of the first
 * argument. */
/* clang-format off */
#define NEWER_CALLS(X)                                                                             \
	X(struct ibv_mr *, ibv_reg_mr_ex, (struct ibv_pd *pd, struct ibv_mr_init_attr *attr),      \
	  (pd, attr), NUL, OF_OBJECT)                                                              \
	X(struct ibv_dmah *, ibv_alloc_dmah,                                                       \
	  (struct ibv_context *ctx, struct ibv_dmah_init_attr *attr), (ctx, attr), NUL,            \
	  OF_CONTEXT)                                                                              \
	X(int, ibv_dealloc_dmah, (struct ibv_dmah *dmah), (dmah), ERR, OF_OBJECT)                  \
	X(int, ibv_dm_export_dmabuf_fd, (struct ibv_dm *dm), (dm), NEG, OF_OBJECT)                 \
	X(int, ibv_query_port_speed, (struct ibv_context *ctx, uint32_t port, uint64_t *speed),    \
	  (ctx, port, speed), ERR, OF_CONTEXT)                                                     \
	X(int, _ibv_query_comp_cntr_caps,                                                          \
	  (struct ibv_context *ctx, struct ibv_comp_cntr_caps *caps, size_t size),                 \
	  (ctx, caps, size), ERR, OF_CONTEXT)                                                      \
	X(struct ibv_comp_cntr *, ibv_create_comp_cntr,                                            \
	  (struct ibv_context *ctx, struct ibv_comp_cntr_init_attr *attr), (ctx, attr), NUL,       \
	  OF_CONTEXT)                                                                              \
	X(int, ibv_destroy_comp_cntr, (struct ibv_comp_cntr *cntr), (cntr), ERR, OF_OBJECT)        \
	X(int, ibv_set_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t value), (cntr, value),     \
	  ERR, OF_OBJECT)                                                                          \
	X(int, ibv_set_err_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t value), (cntr, value), \
	  ERR, OF_OBJECT)                                                                          \
	X(int, ibv_inc_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t amount), (cntr, amount),   \
	  ERR, OF_OBJECT)                                                                          \
	X(int, ibv_inc_err_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t amount),               \
	  (cntr, amount), ERR, OF_OBJECT)                                                          \
	X(int, ibv_read_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t *value), (cntr, value),   \
	  ERR, OF_OBJECT)                                                                          \
	X(int, ibv_read_err_comp_cntr, (struct ibv_comp_cntr *cntr, uint64_t *value),              \
	  (cntr, value), ERR, OF_OBJECT)                                                           \
	X(int, ibv_qp_attach_comp_cntr,                                                            \
	  (struct ibv_qp *qp, struct ibv_comp_cntr *cntr,                                          \
	   struct ibv_qp_attach_comp_cntr_attr *attr),                                             \
	  (qp, cntr, attr), ERR, OF_OBJECT)
/* clang-format on */

#define FIRST(object, ...) object
/* The function of rdma-core's own library, or NULL if that library is older than the headers. */
#define RDMA_CORE(name) ((__typeof__(name) *)rdma_core_symbol(#name))

#define REFUSE(ret, name, params, args, failure, of)                                               \
	ret name params;                                                                           \
	ret name params                                                                            \
	{                                                                                          \
		OPS_SCOPE ops = ops_of(of(FIRST args));                                            \
                                                                                                   \
		if (ops->is_rdma_core && RDMA_CORE(name))                                          \
			return RDMA_CORE(name) args;                                               \
		return REFUSE_##failure(EOPNOTSUPP);                                               \
	}
NEWER_CALLS(REFUSE)

/* Columns: name, parameters, arguments. All calls return an int, and fail with -1 and errno. */
/* clang-format off */
#define NEWER_CM_CALLS(X)                                                                          \
	X(rdma_resolve_addrinfo,                                                                   \
	  (struct rdma_cm_id *id, const char *node, const char *service,                           \
	   const struct rdma_addrinfo *hints),                                                     \
	  (id, node, service, hints))                                                              \
	X(rdma_query_addrinfo, (struct rdma_cm_id *id, struct rdma_addrinfo **info), (id, info))   \
	X(rdma_write_cm_event,                                                                     \
	  (struct rdma_cm_id *id, enum rdma_cm_event_type event, int status, uint64_t arg),        \
	  (id, event, status, arg))
/* clang-format on */

/* After the first statement `id` is the inner id. */
#define REFUSE_CM(name, params, args)                                                              \
	int name params;                                                                           \
	int name params                                                                            \
	{                                                                                          \
		OPS_SCOPE ops = shim_id_of(id)->ops;                                               \
                                                                                                   \
		id = shim_id_of(id)->inner;                                                        \
		if (ops->is_rdma_core && RDMA_CORE(name))                                          \
			return RDMA_CORE(name) args;                                               \
		return REFUSE_NEG(EOPNOTSUPP);                                                     \
	}
NEWER_CM_CALLS(REFUSE_CM)

/* --- buffers ------------------------------------------------------------------------------ */

/* A buffer of the software RNIC. Only `mark` distinguishes it from a buffer of rdma-core. */
struct ibv_buf {
	const void *mark;
	void *addr;
	size_t len;
};
static const char newer_mark;

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t len,
			      int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);
void ibv_free_buf(struct ibv_buf *buf);

static void *newer_buf_new(size_t size, struct ibv_buf **out)
{
	struct ibv_buf *buf = calloc(1, sizeof(*buf));
	void *addr;

	if (!buf)
		return NULL;
	addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED) {
		free(buf);
		return NULL;
	}
	*buf = (struct ibv_buf){.mark = &newer_mark, .addr = addr, .len = size};
	*out = buf;
	return addr;
}

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	OPS_SCOPE ops = ops_of(pd->context);

	if (ops->is_rdma_core)
		return RDMA_CORE(ibv_alloc_buf) ? RDMA_CORE(ibv_alloc_buf)(pd, size, buf)
						: REFUSE_NUL(EOPNOTSUPP);
	return newer_buf_new(size, buf);
}

static bool newer_buf_has(const struct ibv_buf *buf, const void *addr, size_t len)
{
	uintptr_t begin = (uintptr_t)buf->addr, at = (uintptr_t)addr;

	return at >= begin && at - begin <= buf->len && len <= buf->len - (at - begin);
}

struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t len,
			      int access)
{
	OPS_SCOPE ops = ops_of(pd->context);

	if (ops->is_rdma_core && buf->mark != &newer_mark)
		return RDMA_CORE(ibv_reg_buf_mr)
			       ? RDMA_CORE(ibv_reg_buf_mr)(pd, buf, addr, len, access)
			       : REFUSE_NUL(EOPNOTSUPP);
	if (buf->mark != &newer_mark || !newer_buf_has(buf, addr, len))
		return REFUSE_NUL(EINVAL);
	return ops->verbs.reg_mr(pd, addr, len, access);
}

int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	if (buf->mark != &newer_mark && RDMA_CORE(ibv_export_buf_dmabuf_fd))
		return RDMA_CORE(ibv_export_buf_dmabuf_fd)(buf);
	return REFUSE_NEG(EOPNOTSUPP);
}

void ibv_free_buf(struct ibv_buf *buf)
{
	if (buf->mark != &newer_mark) {
		if (RDMA_CORE(ibv_free_buf))
			RDMA_CORE(ibv_free_buf)(buf);
		return;
	}
	munmap(buf->addr, buf->len);
	free(buf);
}
