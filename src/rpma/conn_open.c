/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_open.c -- connects and waits for the outcome. As long as there is no listener, repeats the
 * attempt. */
#include <string.h>

#include "base/poll.h"
#include "rpma/conn.h"
#include "rpma/conn_req.h"
#include "rpma/err.h"

#define OPEN_TIMEOUT_MS 10000
/* pause before the second attempt; each further pause is twice as long */
#define OPEN_PAUSE_MS     10
#define OPEN_PAUSE_MAX_MS 500
/* additional time in which the device can report its own time limit */
#define OPEN_GRACE_MS 100

/* Copy the members that this version knows. Returns false if the caller has set other members. */
static bool conn_open_attr_copy(struct rpma_conn_open_attr *attr,
				const struct rpma_conn_open_attr *given)
{
	size_t known = given->size < sizeof(*attr) ? given->size : sizeof(*attr);

	for (size_t i = known; i < given->size; i++)
		if (((const char *)given)[i])
			return false;
	memset(attr, 0, sizeof(*attr));
	memcpy(attr, given, known);
	if (!attr->timeout_ms)
		attr->timeout_ms = OPEN_TIMEOUT_MS;
	return true;
}

static bool conn_open_attr_is_valid(const struct rpma_conn_open_attr *attr)
{
	return attr->addr && attr->port && attr->timeout_ms >= -1 && attr->retry_ms >= -1;
}

static int conn_open_request_new(struct rpma_peer *peer, const struct rpma_conn_open_attr *attr,
				 struct rpma_conn_req **req)
{
	int ret = rpma_conn_req_new(peer, attr->addr, attr->port, attr->cfg, req);

	if (ret || !attr->prepare)
		return ret;
	ret = attr->prepare(*req, attr->arg);
	if (ret)
		rpma_conn_req_delete(req);
	return ret;
}

/* Convert the first event of a connect to the caller's result. */
static int conn_open_outcome(const struct rpma_conn *conn, enum rpma_conn_event event)
{
	switch (event) {
	case RPMA_CONN_ESTABLISHED:
		return 0;
	case RPMA_CONN_REJECTED:
		return atomic_load(&conn->rejection) == RPMA_REJECTION_REFUSED ? 0 : RPMA_E_AGAIN;
	case RPMA_CONN_UNREACHABLE:
		return RPMA_E_NO_EVENT;
	case RPMA_CONN_LOST: /* the server exited before it answered, and may be restarting */
		return conn->is_foreign ? RPMA_E_NOSUPP : RPMA_E_AGAIN;
	default:
		return RPMA_E_UNKNOWN;
	}
}

/*
 * Returns true unless the device's own limit is shorter. If true, the device gets the deadline as
 * well, because it can report which step did not end in time: the connection or the answer.
 */
static bool conn_open_sets_limit(int left_ms)
{
	return left_ms > 0 && left_ms <= OPEN_TIMEOUT_MS;
}

static int conn_open_wait(struct rpma_conn *conn, int left_ms, enum rpma_conn_event *event)
{
	int grace_ms = conn_open_sets_limit(left_ms) ? OPEN_GRACE_MS : 0;
	int ret = rpma_conn_next_event_timeout(conn, left_ms + grace_ms, event);

	if (ret == RPMA_E_NO_EVENT)
		err_time_limit(ret, left_ms,
			       "no answer came: see whether an RDMA server listens there, or allow "
			       "more time (timeout_ms)");
	return ret;
}

static int conn_open_try(struct rpma_peer *peer, const struct rpma_conn_open_attr *attr,
			 uint64_t deadline, enum rpma_conn_event *event,
			 struct rpma_conn **conn_ptr)
{
	enum rpma_conn_event first;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	int left_ms, ret = conn_open_request_new(peer, attr, &req);

	left_ms = poll_ms_left(deadline);
	if (!ret && conn_open_sets_limit(left_ms))
		conn_req_limit(req, attr->cfg, left_ms);
	if (!ret)
		ret = rpma_conn_req_connect(&req, attr->pdata, &conn);
	if (ret)
		return ret;
	ret = conn_open_wait(conn, left_ms, &first);
	if (!ret)
		ret = conn_open_outcome(conn, first);
	if (ret) {
		rpma_conn_delete(&conn);
		return ret;
	}
	*event = first;
	*conn_ptr = conn;
	return 0;
}

int rpma_conn_open(struct rpma_peer *peer, const struct rpma_conn_open_attr *attr,
		   enum rpma_conn_event *event, struct rpma_conn **conn_ptr)
{
	struct rpma_conn_open_attr a;
	char before_text[ERR_TEXT_MAX];
	uint64_t deadline, until;
	int ret, before = 0, pause_ms = OPEN_PAUSE_MS;

	if (!peer || !attr || !event || !conn_ptr)
		return INVALID();
	if (!conn_open_attr_copy(&a, attr)) {
		LOG_ERROR(
			"rpma_conn_open(): attr has a member that this version of librpma does not "
			"support; run the program with a newer version");
		return RPMA_E_NOSUPP;
	}
	if (!conn_open_attr_is_valid(&a))
		return INVALID();
	deadline = poll_deadline(a.timeout_ms);
	until = poll_deadline(a.retry_ms);
	if (deadline < until)
		until = deadline;
	for (;;) {
		int left_ms;

		ret = conn_open_try(peer, &a, deadline, event, conn_ptr);
		/*
		 * If the deadline ended this attempt early, report the result of the previous
		 * attempt, because it explains more.
		 */
		if (ret == RPMA_E_NO_EVENT && before && !poll_ms_left(deadline))
			ret = err_set(before, before_text);
		left_ms = poll_ms_left(until);
		if ((ret != RPMA_E_AGAIN && ret != RPMA_E_NO_EVENT) || !left_ms)
			return ret;
		before = ret;
		snprintf(before_text, sizeof(before_text), "%s", rpma_err_last());
		LOG_INFO("no answer at %s port %s yet", a.addr, a.port);
		poll(NULL, 0, left_ms > 0 && left_ms < pause_ms ? left_ms : pause_ms);
		pause_ms = 2 * pause_ms < OPEN_PAUSE_MAX_MS ? 2 * pause_ms : OPEN_PAUSE_MAX_MS;
	}
}
