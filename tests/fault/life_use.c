/* SPDX-License-Identifier: BSD-3-Clause */
/* life_use.c -- the parts of a life that wait for events and completions and make each operation
 * once. */
#include <poll.h>

#include "fault/life_impl.h"

enum { LIMIT_MS = 20000 };

static void life_broke(struct life *l, const char *what)
{
	l->judge->broke(what);
	l->over = true;
}

bool life_await_either(struct life *l, int fd, int failed, const char *what)
{
	struct pollfd pfd[] = {{.fd = fd, .events = POLLIN}, {.fd = failed, .events = POLLIN}};

	if (poll(pfd, 2, LIMIT_MS) < 1)
		l->judge->hung(what);
	if (!pfd[0].revents)
		life_broke(l, what);
	return !l->over;
}

void life_await(struct life *l, int fd, const char *what)
{
	life_await_either(l, fd, -1, what);
}

void life_await_event(struct life *l, struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;
	int fd;

	if (l->over)
		return;
	rpma_conn_get_event_fd(conn, &fd);
	life_await(l, fd, rpma_utils_conn_event_2str(wanted));
	MAKE(l, &event, rpma_conn_next_event, conn);
	if (!l->over && event != wanted)
		life_broke(l, rpma_utils_conn_event_2str(event));
}

/*
 * Arm a queue before each completion, so that the completion is announced. When a connection ends,
 * the receives of a shared queue do not complete; only the connection's event reports the end.
 */
static void life_await_queue(struct life *l, struct rpma_conn *conn, struct rpma_cq *cq,
			     bool shared, bool received)
{
	struct rpma_cq *announced;
	bool is_rcq;
	int fd, failed;

	rpma_cq_get_fd(cq, &fd);
	rpma_conn_get_event_fd(conn, &failed);
	if (!life_await_either(l, fd, failed, "completion"))
		return;
	/* Use the wait without a limit and the wait with a limit in turn. */
	if (shared && received)
		STEP(l, rpma_conn_wait_timeout, conn, LIMIT_MS, &announced, &is_rcq);
	else if (shared)
		STEP(l, rpma_conn_wait, conn, 0, &announced, &is_rcq);
	else if (received)
		STEP(l, rpma_cq_wait, cq);
	else
		STEP(l, rpma_cq_wait_timeout, cq, LIMIT_MS);
}

static void life_await_completion(struct life *l, struct rpma_conn *conn, struct rpma_cq *cq,
				  bool shared, bool received)
{
	struct ibv_wc wc;

	do {
		life_await_queue(l, conn, cq, shared, received);
		STEP(l, rpma_cq_get_wc, cq, 1, &wc, NULL);
	} while (!l->over && l->ret);
	if (!l->over && wc.status != IBV_WC_SUCCESS)
		life_broke(l, ibv_wc_status_str(wc.status));
}

/* The active side's queues share a channel; each queue of the passive side has a channel of its
 * own. */
void life_await_active(struct life *l, bool received)
{
	struct rpma_cq *cq;

	if (l->over)
		return;
	if (received)
		rpma_conn_get_rcq(l->active, &cq);
	else
		rpma_conn_get_cq(l->active, &cq);
	life_await_completion(l, l->active, cq, true, received);
}

void life_await_passive(struct life *l, bool received)
{
	struct rpma_cq *cq;

	if (l->over)
		return;
	if (received)
		rpma_srq_get_rcq(l->srq, &cq);
	else
		rpma_conn_get_cq(l->passive, &cq);
	life_await_completion(l, l->passive, cq, false, received);
}

static void life_one_sided(struct life *l)
{
	const int always = RPMA_F_COMPLETION_ALWAYS;

	STEP(l, rpma_write, l->active, l->remote, 8192, l->mr, 0, 4096, RPMA_F_COMPLETION_ON_ERROR,
	     NULL);
	STEP(l, rpma_flush, l->active, l->remote, 8192, 4096, RPMA_FLUSH_TYPE_PERSISTENT, always,
	     NULL);
	life_await_active(l, false);
	STEP(l, rpma_flush, l->active, l->remote, 8192, 64, RPMA_FLUSH_TYPE_VISIBILITY, always,
	     NULL);
	life_await_active(l, false);
	STEP(l, rpma_atomic_write, l->active, l->remote, 8192, "01234567", always, NULL);
	life_await_active(l, false);
	STEP(l, rpma_read, l->active, l->mr, 4096, l->remote, 8192, 64, always, NULL);
	life_await_active(l, false);
}

/* No receive is posted for the first message, so the passive side parks the message. */
static void life_messages(struct life *l)
{
	struct rpma_cq *cq;
	struct ibv_wc wc;

	STEP(l, rpma_send, l->active, l->mr, 0, LIFE_MSG, RPMA_F_COMPLETION_ALWAYS, NULL);
	if (l->over)
		return;
	rpma_conn_get_cq(l->passive, &cq);
	STEP(l, rpma_cq_get_wc, cq, 1, &wc, NULL);
	STEP(l, rpma_srq_recv, l->srq, l->mr, 0, LIFE_MSG, NULL);
	life_await_active(l, false);
	life_await_passive(l, true);
	STEP(l, rpma_recv, l->active, l->mr, 0, LIFE_MSG, NULL);
	for (int i = 0; i < 2; i++) {
		STEP(l, rpma_send, l->passive, l->mr, 0, LIFE_MSG, RPMA_F_COMPLETION_ALWAYS, NULL);
		life_await_passive(l, false);
		life_await_active(l, true);
	}
}

/* These posts are the last ones, because a provider is allowed to refuse them. The life does not
 * wait for their completions. */
static void life_immediates(struct life *l)
{
	for (int i = 0; i < 2; i++)
		STEP(l, rpma_srq_recv, l->srq, l->mr, 0, LIFE_MSG, NULL);
	STEP(l, rpma_write_with_imm, l->active, l->remote, 8192, l->mr, 0, 64,
	     RPMA_F_COMPLETION_ON_ERROR, 1, NULL);
	STEP(l, rpma_send_with_imm, l->active, l->mr, 0, LIFE_MSG, RPMA_F_COMPLETION_ON_ERROR, 1,
	     NULL);
}

void life_transfer(struct life *l)
{
	life_one_sided(l);
	life_messages(l);
	life_use_more(l);
	life_immediates(l);
}
