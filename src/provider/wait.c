/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/wait.h"

#include <errno.h>
#include <pthread.h>

#include "base/poll.h"

/*
 * If several threads find the descriptor readable, only one of them gets the event, and rdma-core
 * would block the other threads. So each thread polls again before it gets the event, and only one
 * thread at a time does so.
 */
static int wait_take(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **cq_context)
{
	static pthread_mutex_t taking = PTHREAD_MUTEX_INITIALIZER;
	int ret = -1;

	pthread_mutex_lock(&taking);
	if (poll_readable(ch->fd, 0))
		errno = EAGAIN;
	else
		ret = ibv_get_cq_event(ch, cq, cq_context);
	pthread_mutex_unlock(&taking);
	return ret;
}

int verbs_wait_cq_event(struct ibv_comp_channel *ch, int timeout_ms, struct ibv_cq **cq,
			void **cq_context)
{
	uint64_t deadline = poll_deadline(timeout_ms);

	for (;;) {
		int ret = poll_readable(ch->fd, deadline);

		if (ret) {
			errno = -ret;
			return -1;
		}
		if (!wait_take(ch, cq, cq_context))
			return 0;
		/* a real error: the channel is not just empty */
		if (errno != EAGAIN && errno != EINTR)
			return -1;
	}
}
