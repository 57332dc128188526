/* SPDX-License-Identifier: BSD-3-Clause */
/* vctx.c -- sets the function pointers in a context, by which inline functions of verbs.h make
 * calls that have no symbol. If a pointer is NULL, the inline function fails with EOPNOTSUPP. */
#include "softrnic/verbs/device.h"
#include "softrnic/softrnic.h"

void vctx_fill(struct verbs_context *vctx)
{
	vctx->advise_mr = softrnic_advise_mr;
	vctx->alloc_parent_domain = softrnic_alloc_parent_domain;
	vctx->alloc_td = softrnic_alloc_td;
	vctx->create_cq_ex = softrnic_create_cq_ex;
	vctx->create_qp_ex = softrnic_create_plain_qp_ex;
	vctx->dealloc_td = softrnic_dealloc_td;
	vctx->modify_cq = softrnic_modify_cq;
	vctx->query_rt_values = softrnic_query_rt_values_ex;
}
