/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/completions.h"

#include <fcntl.h>

#include "base/poll.h"

static void completions_unblock(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int completions_init(struct completions *c, struct rpma_conn *conn)
{
	int rc = rpma_conn_get_cq(conn, &c->cq);

	c->conn = conn;
	c->closed = false;
	if (!rc)
		rc = rpma_cq_get_fd(c->cq, &c->cq_fd);
	if (!rc)
		rc = rpma_conn_get_event_fd(conn, &c->event_fd);
	if (rc)
		return rc;
	/*
	 * poll() decides which descriptor is ready. The read after poll() must not block this
	 * thread if another thread has taken the wake-up.
	 */
	completions_unblock(c->cq_fd);
	completions_unblock(c->event_fd);
	return 0;
}

static int completions_look(struct completions *c, struct ibv_wc *wc, unsigned spin_us)
{
	uint64_t until = spin_us ? clock_now_ns() + spin_us * 1000ull : 0;
	int rc;

	do {
		rc = rpma_cq_get_wc(c->cq, 1, wc, NULL);
	} while (rc == RPMA_E_NO_COMPLETION && spin_us && clock_now_ns() < until);
	return rc;
}

/* Sleep until a completion or an event has come. Returns false if the deadline has passed. */
static bool completions_sleep(struct completions *c, uint64_t deadline)
{
	struct pollfd fds[] = {
		{.fd = c->cq_fd, .events = POLLIN},
		{.fd = c->event_fd, .events = POLLIN},
	};
	enum rpma_conn_event event;
	int ms, n;

	do {
		ms = poll_ms_left(deadline);
		n = poll(fds, 2, ms);
	} while ((n < 0 && errno == EINTR) || (n == 0 && poll_ms_left(deadline) != 0));
	if (n <= 0)
		return false;
	if (fds[0].revents)
		/* arms the queue again; a wake-up without a completion is harmless */
		rpma_cq_wait(c->cq);
	if (fds[1].revents && !rpma_conn_next_event(c->conn, &event) &&
	    event != RPMA_CONN_ESTABLISHED)
		c->closed = true;
	return true;
}

int completions_next(struct completions *c, int timeout_ms, unsigned spin_us, struct ibv_wc *wc)
{
	uint64_t deadline = poll_deadline(timeout_ms);

	for (;;) {
		/* Read `closed` before the queue, so that no completion that came before the end
		 * is missed. */
		bool closed = c->closed;
		int rc = completions_look(c, wc, spin_us);

		if (rc != RPMA_E_NO_COMPLETION)
			return rc ? rc : COMPLETIONS_ONE;
		if (closed)
			return COMPLETIONS_CLOSED;
		if (!completions_sleep(c, deadline))
			return COMPLETIONS_TIMEOUT;
	}
}
