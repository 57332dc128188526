/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/verbs/qp_attr.h"

#include "softrnic/rnic/rnic.h"

/* Greatest values of two attributes: their fields in InfiniBand's headers have 5 and 3 bits. */
#define ATTR_TIMER_MAX 31
#define ATTR_RETRY_MAX 7
#define ATTR_24_BITS   0xffffffu

/* Is the path valid? The device has one port and one partition key, and on Ethernet a path needs a
 * global header. */
static bool attr_av_is_valid(const struct ibv_ah_attr *av)
{
	return av->is_global && av->port_num == 1;
}

static bool attr_mtu_is_valid(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096;
}

/* One row for each attribute that can have invalid values: its bit, and the condition for a valid
 * value. */
/* clang-format off */
#define ATTR_CHECKS(X)                                                                             \
	X(PORT, attr->port_num == 1)                                                               \
	X(PKEY_INDEX, attr->pkey_index == 0)                                                       \
	X(AV, attr_av_is_valid(&attr->ah_attr))                                                    \
	X(PATH_MTU, attr_mtu_is_valid(attr->path_mtu))                                             \
	X(DEST_QPN, attr->dest_qp_num <= ATTR_24_BITS)                                             \
	X(TIMEOUT, attr->timeout <= ATTR_TIMER_MAX)                                                \
	X(RETRY_CNT, attr->retry_cnt <= ATTR_RETRY_MAX)                                            \
	X(RNR_RETRY, attr->rnr_retry <= ATTR_RETRY_MAX)                                            \
	X(MIN_RNR_TIMER, attr->min_rnr_timer <= ATTR_TIMER_MAX)                                    \
	X(MAX_QP_RD_ATOMIC, attr->max_rd_atomic <= RNIC_MAX_RD_ATOM)                               \
	X(MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic <= RNIC_MAX_RD_ATOM)

/* One row for each attribute: its bit, its member, and the value to store. */
#define ATTR_MEMBERS(X)                                                                            \
	X(PORT, port_num, attr->port_num)                                                          \
	X(PKEY_INDEX, pkey_index, attr->pkey_index)                                                \
	X(ACCESS_FLAGS, qp_access_flags, attr->qp_access_flags)                                    \
	X(QKEY, qkey, attr->qkey)                                                                  \
	X(AV, ah_attr, attr->ah_attr)                                                              \
	X(PATH_MTU, path_mtu, attr->path_mtu)                                                      \
	X(DEST_QPN, dest_qp_num, attr->dest_qp_num)                                                \
	X(RQ_PSN, rq_psn, attr->rq_psn & ATTR_24_BITS)                                             \
	X(SQ_PSN, sq_psn, attr->sq_psn & ATTR_24_BITS)                                             \
	X(TIMEOUT, timeout, attr->timeout)                                                         \
	X(RETRY_CNT, retry_cnt, attr->retry_cnt)                                                   \
	X(RNR_RETRY, rnr_retry, attr->rnr_retry)                                                   \
	X(MIN_RNR_TIMER, min_rnr_timer, attr->min_rnr_timer)                                       \
	X(MAX_QP_RD_ATOMIC, max_rd_atomic, attr->max_rd_atomic)                                    \
	X(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, attr->max_dest_rd_atomic)                        \
	X(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify, attr->en_sqd_async_notify)
/* clang-format on */

bool qp_attr_is_valid(const struct ibv_qp_attr *attr, int mask)
{
#define X(bit, valid)                                                                              \
	if ((mask & IBV_QP_##bit) && !(valid))                                                     \
		return false;
	ATTR_CHECKS(X)
#undef X
	return true;
}

void qp_attr_store(struct ibv_qp_attr *to, const struct ibv_qp_attr *attr, int mask)
{
#define X(bit, member, value)                                                                      \
	if (mask & IBV_QP_##bit)                                                                   \
		to->member = value;
	ATTR_MEMBERS(X)
#undef X
}
