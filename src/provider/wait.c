/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/wait.h"

#include <errno.h>

#include "base/poll.h"

/* After a failed take: was there only nothing to take? */
static bool took_nothing(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
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
		if (!ibv_get_cq_event(ch, cq, cq_context))
			return 0;
		if (!took_nothing())
			return -1;
	}
}
