/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli.h"
#include "liblog.h"
#include "session.h"

int session_register(struct session *s, void *buf, size_t size, struct rpma_mr_local **mr)
{
	int rc = rpma_mr_reg(s->peer, buf, size, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
			     mr);

	return rc ? cli_fail(CLI_TRANSFER, "cannot register a buffer of %zu bytes: %s", size,
			     liblog_reason(rc))
		  : CLI_OK;
}

int session_post_failed(struct session *s, const char *what, int rc)
{
	return cli_fail(CLI_TRANSFER, "cannot %s %s: %s", what, s->server, liblog_reason(rc));
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static int poll_cq(struct session *s, struct ibv_wc *wc, unsigned spin_us)
{
	uint64_t until = spin_us ? now_us() + spin_us : 0;
	int rc;

	do {
		rc = rpma_cq_get_wc(s->cq, 1, wc, NULL);
	} while (rc == RPMA_E_NO_COMPLETION && spin_us && now_us() < until);
	return rc;
}

static void take_events(struct session *s)
{
	enum rpma_conn_event event;

	if (!rpma_conn_next_event(s->conn, &event) && event != RPMA_CONN_ESTABLISHED)
		s->closed = true;
}

/* Sleep until there is a completion or an event. */
static int sleep_for_news(struct session *s)
{
	struct pollfd fds[] = {
		{.fd = s->cq_fd, .events = POLLIN},
		{.fd = s->event_fd, .events = POLLIN},
	};
	int rc;

	do {
		rc = poll(fds, s->closed ? 1 : 2, s->timeout_ms);
	} while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return cli_fail(CLI_TRANSFER, "%s has not answered for %d s", s->server,
				s->timeout_ms / 1000);
	if (fds[0].revents)
		rpma_cq_wait(s->cq); /* re-arms; a wake-up without a completion is harmless */
	if (fds[1].revents)
		take_events(s);
	return CLI_OK;
}

int session_reap(struct session *s, unsigned spin_us, struct ibv_wc *wc)
{
	struct ibv_wc mine;
	bool last_look = false;
	char why[256];

	wc = wc ? wc : &mine;
	for (;;) {
		int rc = poll_cq(s, wc, spin_us);

		if (!rc)
			break;
		if (rc != RPMA_E_NO_COMPLETION)
			return session_post_failed(s, "take completions from", rc);
		if (last_look)
			return cli_fail(CLI_TRANSFER, "%s closed the connection", s->server);
		last_look = s->closed;
		rc = last_look ? CLI_OK : sleep_for_news(s);
		if (rc)
			return rc;
	}
	if (wc->status == IBV_WC_SUCCESS && (wc->opcode & IBV_WC_RECV) && !s->expects_mail)
		return session_take_verdict(s, wc->byte_len);
	if (wc->status == IBV_WC_SUCCESS)
		return CLI_OK;
	rpma_wc_explain(s->conn, wc, why, sizeof(why));
	return cli_fail(CLI_TRANSFER, "%s: %s", s->server, why);
}
