/* SPDX-License-Identifier: BSD-3-Clause */
/* cq.c -- completion queues. */
#include "rpma/cq.h"

#include <limits.h>
#include <stdlib.h>

#include "rpma/err.h"
#include "rpma/peer.h"

static int cq_queue_open(struct rpma_cq *cq, struct ibv_context *ctx, uint32_t size)
{
	int cqe = size > INT_MAX ? INT_MAX : (int)size;

	cq->ibv = cq->prov->create_cq(ctx, cqe, NULL, cq->channel, 0);
	if (!cq->ibv)
		return PROVIDER_FAILED(errno, "ibv_create_cq(cqe=%d)", cqe);
	return cq_arm(cq);
}

int cq_new(const struct provider *prov, struct ibv_context *ctx, uint32_t size,
	   struct ibv_comp_channel *shared, struct rpma_cq **cq_ptr)
{
	struct rpma_cq *cq = calloc(1, sizeof(*cq));
	int ret;

	if (!cq)
		return err_set(RPMA_E_NOMEM, "there is no memory for a completion queue");
	cq->prov = prov;
	cq->channel_is_shared = shared != NULL;
	cq->channel = shared ? shared : prov->create_comp_channel(ctx);
	ret = cq->channel ? cq_queue_open(cq, ctx, size)
			  : PROVIDER_FAILED(errno, "%s", "ibv_create_comp_channel()");
	if (ret)
		cq_delete(&cq);
	else
		*cq_ptr = cq;
	return ret;
}

int cq_delete(struct rpma_cq **cq_ptr)
{
	struct rpma_cq *cq = *cq_ptr;
	int ret = 0;
	int err;

	if (!cq)
		return 0;
	err = cq->ibv ? cq->prov->destroy_cq(cq->ibv) : 0;
	if (err)
		ret = PROVIDER_FAILED(err, "%s", "ibv_destroy_cq()");
	err = cq->channel && !cq->channel_is_shared ? cq->prov->destroy_comp_channel(cq->channel)
						    : 0;
	if (err)
		ret = first_error(ret, PROVIDER_FAILED(err, "%s", "ibv_destroy_comp_channel()"));
	free(cq);
	*cq_ptr = NULL;
	return ret;
}

int cq_arm(struct rpma_cq *cq)
{
	int err = provider_req_notify_cq(cq->ibv);

	return err ? PROVIDER_FAILED(err, "%s", "ibv_req_notify_cq()") : 0;
}

int rpma_cq_new(struct rpma_peer *peer, uint32_t size, struct rpma_cq **cq_ptr)
{
	struct rpma_cq *cq;
	int ret;

	if (!peer || !size || !cq_ptr)
		return INVALID();
	ret = cq_new(peer->prov, peer->pd->context, size, NULL, &cq);
	if (ret)
		return ret;
	cq->is_common = true;
	*cq_ptr = cq;
	return 0;
}

int rpma_cq_delete(struct rpma_cq **cq_ptr)
{
	unsigned int users;

	if (!cq_ptr)
		return INVALID();
	if (!*cq_ptr)
		return 0;
	if (!(*cq_ptr)->is_common) {
		LOG_ERROR("the completion queue belongs to a connection or a shared receive queue");
		return RPMA_E_INVAL;
	}
	users = atomic_load(&(*cq_ptr)->users);
	if (users) {
		LOG_ERROR("%u connections or requests still complete in this queue", users);
		return RPMA_E_AGAIN;
	}
	return cq_delete(cq_ptr);
}

int rpma_cq_get_fd(const struct rpma_cq *cq, int *fd)
{
	if (!cq || !fd)
		return INVALID();
	*fd = cq->channel->fd;
	return 0;
}

static int cq_is_shared_error(void)
{
	return err_set(RPMA_E_SHARED_CHANNEL,
		       "the completion queue's channel is shared: wait with rpma_conn_wait()");
}

/*
 * Take the announcement. The queue is armed again before the caller polls it, so that a completion
 * during the poll is announced.
 */
static int cq_take_announcement(struct rpma_cq *cq, struct ibv_cq *announced)
{
	cq->prov->ack_cq_events(announced, 1);
	return cq_arm(cq);
}

int rpma_cq_wait(struct rpma_cq *cq)
{
	struct ibv_cq *announced;
	void *context;

	if (!cq)
		return INVALID();
	if (cq->channel_is_shared)
		return cq_is_shared_error();
	if (cq->prov->get_cq_event(cq->channel, &announced, &context))
		return RPMA_E_NO_COMPLETION;
	return cq_take_announcement(cq, announced);
}

int cq_wait_channel(const struct provider *prov, struct ibv_comp_channel *channel, int timeout_ms,
		    struct ibv_cq **announced)
{
	void *context;

	if (!prov->wait_cq_event(channel, timeout_ms, announced, &context))
		return 0;
	if (errno == ETIMEDOUT || errno == EAGAIN)
		return err_time_limit(
			RPMA_E_NO_COMPLETION, timeout_ms,
			"no completion was announced: what was posted may still be "
			"carried out; wait again, or give it up with rpma_conn_delete()");
	return PROVIDER_FAILED(errno, "ibv_get_cq_event(timeout_ms=%d)", timeout_ms);
}

int rpma_cq_wait_timeout(struct rpma_cq *cq, int timeout_ms)
{
	struct ibv_cq *announced;
	int ret;

	if (!cq || timeout_ms < -1)
		return INVALID();
	if (cq->channel_is_shared)
		return cq_is_shared_error();
	ret = cq_wait_channel(cq->prov, cq->channel, timeout_ms, &announced);
	return ret ? ret : cq_take_announcement(cq, announced);
}

int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc, int *num_entries_got)
{
	int got;

	if (!cq || !wc || num_entries < 1 || (num_entries > 1 && !num_entries_got))
		return INVALID();
	got = provider_poll_cq(cq->ibv, num_entries, wc);
	if (!got) {
		LOG_DEBUG("no completion in the queue");
		return RPMA_E_NO_COMPLETION;
	}
	if (got < 0) {
		LOG_ERROR("ibv_poll_cq() failed: it returned %d", got);
		return RPMA_E_PROVIDER;
	}
	if (got > num_entries) {
		LOG_ERROR("ibv_poll_cq() returned %d completions, asked for %d", got, num_entries);
		return RPMA_E_UNKNOWN;
	}
	if (num_entries_got)
		*num_entries_got = got;
	return 0;
}
