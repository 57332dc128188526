/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rnr.c -- a Send that waits for a receive (receiver not ready). The receiver's Ack contains the
 * time that its user has set (doc/wire.md s6). The sender's user has set how often a card would
 * repeat the Send. The owner measures the time: this file has no clock.
 */
#include "softrnic/rnic/qp_impl.h"

#define RNR_NO_LIMIT 7 /* InfiniBand's count of retries that stands for any number */
/* Minimum time for a retry: the thread that posts receives may be late on a busy machine. */
#define RNR_LEAST_NS UINT64_C(10000000)
#define RNR_UNIT_NS  UINT64_C(10000)

/* The times until a retry, by InfiniBand's code, in RNR_UNIT_NS. */
static const uint32_t rnr_times[RNIC_RNR_TIMES] = {
	65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,    32,
	48,    64,   96,   128,  192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

void qp_set_rnr_timer(struct qp *qp, uint8_t code)
{
	qp->rnr.told = code < RNIC_RNR_TIMES ? code + 1u : 0;
}

void qp_set_rnr_retry(struct qp *qp, uint8_t retries)
{
	qp->rnr.tries = retries < RNR_NO_LIMIT ? retries + 1u : 0;
}

void rnr_take(struct qp *qp, uint32_t told)
{
	bool waits = told > 0 && told <= RNIC_RNR_TIMES;

	if (!qp->rnr.tries || (!waits && !qp->rnr.waits))
		return;
	qp->rnr.waits = waits;
	qp->rnr.code = waits ? told - 1 : 0;
	qp->rnr.is_new = true;
}

bool qp_rnr_changed(struct qp *qp, uint64_t *ns)
{
	uint64_t once = rnr_times[qp->rnr.code] * RNR_UNIT_NS;

	if (!qp->rnr.is_new)
		return false;
	qp->rnr.is_new = false;
	*ns = qp->rnr.waits ? qp->rnr.tries * (once > RNR_LEAST_NS ? once : RNR_LEAST_NS)
			    : UINT64_MAX;
	return true;
}

void qp_rnr_fail(struct qp *qp)
{
	struct sq_wr *wr = NULL;

	/* the first work request that no Ack covers, except requests that get an answer */
	for (uint64_t i = qp->acks.next; i < qp->sq.next && !wr; i++)
		if (sq_at(&qp->sq, i)->op->messages > 0)
			wr = sq_at(&qp->sq, i);
	if (wr)
		wr->status = IBV_WC_RNR_RETRY_EXC_ERR;
	qp_fail(qp, wr ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RNR_RETRY_EXC_ERR);
}

void rnr_rewind(struct qp *qp)
{
	qp->rnr.waits = qp->rnr.is_new = false;
	qp->rnr.code = 0;
	qp->rnr.for_next = 0;
}
