/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_event.c -- waits for a connection's events, and for completions on a shared channel. */
#include <errno.h>

#include "rpma/conn.h"
#include "rpma/err.h"
#include "rpma/event.h"
#include "rpma/private_data.h"

int rpma_conn_get_event_fd(const struct rpma_conn *conn, int *fd)
{
	if (!conn || !fd)
		return INVALID();
	*fd = conn->evch->fd;
	return 0;
}

static enum rpma_conn_event conn_event_of_cm(enum rdma_cm_event_type type)
{
	switch (type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		return RPMA_CONN_ESTABLISHED;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return RPMA_CONN_LOST;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return RPMA_CONN_CLOSED;
	case RDMA_CM_EVENT_REJECTED:
		return RPMA_CONN_REJECTED;
	case RDMA_CM_EVENT_UNREACHABLE:
		return RPMA_CONN_UNREACHABLE;
	default:
		return RPMA_CONN_UNDEFINED;
	}
}

int rpma_conn_get_rejection(const struct rpma_conn *conn, enum rpma_rejection *rejection)
{
	if (!conn || !rejection)
		return INVALID();
	*rejection = atomic_load(&conn->rejection);
	return 0;
}

static const char *conn_rejection_text(enum rpma_rejection rejection)
{
	switch (rejection) {
	case RPMA_REJECTION_NO_LISTENER:
		return "no program listens there: does the server run?";
	case RPMA_REJECTION_REFUSED:
		return "the application there refused: see its log, and "
		       "rpma_conn_get_private_data()";
	case RPMA_REJECTION_CLOSED:
		return "the program that listens there accepted TCP, then ended or reset it "
		       "without an answer: is it an "
		       "RDMA server, and what does it log?";
	case RPMA_REJECTION_UNKNOWN:
	case RPMA_REJECTION_NONE:
		break;
	}
	return "no program listens there, or the application refused: does the server run?";
}

/* Returns the text for a rejection. A peer that accepted the connection first and ended it
 * afterwards has not rejected the connection. */
static const char *conn_rejection_what(enum rpma_rejection rejection)
{
	switch (rejection) {
	case RPMA_REJECTION_NO_LISTENER:
		return "the host refused the connection";
	case RPMA_REJECTION_CLOSED:
		return "no connection";
	default:
		return "the connection was rejected";
	}
}

static bool conn_event_is_break(const struct rdma_cm_event *cm_event)
{
	return conn_event_of_cm(cm_event->event) == RPMA_CONN_LOST &&
	       cm_event->status != -EPROTONOSUPPORT;
}

/* Returns the text for an errno. The software RNIC uses two errno values with a special meaning,
 * for ports that another program uses. */
static const char *conn_event_reason(int err)
{
	switch (err) {
	case EPROTONOSUPPORT:
		return "the program that listens there does not speak iWARP";
	case ETIME:
		return "the other end accepted the TCP connection, and then sent no answer in time";
	default:
		return reason_text(err);
	}
}

/*
 * Set the error text for an event that ended a connect. An event is not a failed call, but
 * rpma_err_last() must give the reason why there is no connection.
 */
static void conn_event_explain(struct rpma_conn *conn, const struct rdma_cm_event *cm_event)
{
	int err = cm_event->status < 0 ? -cm_event->status : 0;
	const char *advice = err_advice(err);
	char text[ERR_TEXT_MAX];

	if (conn_event_of_cm(cm_event->event) == RPMA_CONN_LOST && err == EBUSY) {
		err_set_text(
			"no connection: former connections of this process, or of its owner, still "
			"place bytes at the target, and the target could not end them in time "
			"(status -16); connect again when the target's memory or file system "
			"answers");
		return;
	}
	switch (conn_event_of_cm(cm_event->event)) {
	case RPMA_CONN_REJECTED:
		atomic_store(&conn->rejection,
			     (enum rpma_rejection)conn->prov->rejection(cm_event));
		snprintf(text, sizeof(text), "%s (status %d): %s",
			 conn_rejection_what(conn->rejection), cm_event->status,
			 conn_rejection_text(conn->rejection));
		break;
	case RPMA_CONN_UNREACHABLE:
	case RPMA_CONN_LOST:
		snprintf(text, sizeof(text), "%s: %s (status %d)%s%s",
			 conn_event_is_break(cm_event) ? "the connection broke" : "no connection",
			 conn_event_reason(err), cm_event->status, advice ? "; " : "",
			 advice ? advice : "");
		break;
	default:
		return;
	}
	err_set_text(text);
}

static int conn_event_take(struct rpma_conn *conn, struct rdma_cm_event *cm_event,
			   enum rpma_conn_event *event)
{
	enum rdma_cm_event_type type = cm_event->event;
	enum rpma_conn_event result = conn_event_of_cm(type);
	bool has_answer = result == RPMA_CONN_ESTABLISHED || result == RPMA_CONN_REJECTED;
	int ret = 0;

	conn->is_foreign = cm_event->status == -EPROTONOSUPPORT;
	conn_event_explain(conn, cm_event);
	/* The passive side keeps the private data of the request instead. */
	if (has_answer && !conn->pdata.ptr)
		ret = private_data_copy(&conn->pdata, cm_event);
	if (conn->prov->ack_cm_event(cm_event)) {
		private_data_fini(&conn->pdata);
		ret = first_error(ret, PROVIDER_FAILED(errno, "%s", "rdma_ack_cm_event()"));
	}
	if (ret)
		return ret;
	if (result == RPMA_CONN_UNDEFINED) {
		LOG_ERROR("unexpected event of the connection: %s", conn->prov->event_str(type));
		return RPMA_E_UNKNOWN;
	}
	LOG_NOTICE("%s", rpma_utils_conn_event_2str(result));
	*event = result;
	return 0;
}

int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event)
{
	struct rdma_cm_event *cm_event;

	if (!conn || !event)
		return INVALID();
	if (conn->prov->get_cm_event(conn->evch, &cm_event))
		return is_no_event(errno) ? RPMA_E_NO_EVENT
					  : PROVIDER_FAILED(errno, "%s", "rdma_get_cm_event()");
	return conn_event_take(conn, cm_event, event);
}

int rpma_conn_next_event_timeout(struct rpma_conn *conn, int timeout_ms,
				 enum rpma_conn_event *event)
{
	struct rdma_cm_event *cm_event;
	int ret;

	if (!conn || !event || timeout_ms < -1)
		return INVALID();
	ret = event_wait(conn->prov, conn->evch, timeout_ms,
			 "the connection reported no event: wait again, or give it up with "
			 "rpma_conn_delete()",
			 &cm_event);
	return ret ? ret : conn_event_take(conn, cm_event, event);
}

static int conn_take_announcement(struct rpma_conn *conn, struct ibv_cq *announced,
				  struct rpma_cq **cq, bool *is_rcq)
{
	const struct queues *q = &conn->queues;
	struct rpma_cq *queue;
	int ret;

	conn->prov->ack_cq_events(announced, 1);
	if (announced == q->cq->ibv) {
		queue = q->cq;
	} else if (q->rcq && announced == q->rcq->ibv) {
		queue = q->rcq;
	} else {
		LOG_ERROR("a completion of a queue that is not the connection's was announced");
		return RPMA_E_UNKNOWN;
	}
	ret = cq_arm(queue);
	*cq = ret ? NULL : queue;
	if (!ret && is_rcq)
		*is_rcq = queue == q->rcq;
	return ret;
}

int rpma_conn_wait(struct rpma_conn *conn, int flags, struct rpma_cq **cq, bool *is_rcq)
{
	struct ibv_cq *announced;
	void *context;

	if (!conn || !cq)
		return INVALID();
	if (!conn->queues.shared_channel)
		return conn_not_shared();
	if (conn->prov->get_cq_event(conn->queues.shared_channel, &announced, &context))
		return RPMA_E_NO_COMPLETION;
	return conn_take_announcement(conn, announced, cq, is_rcq);
}

int rpma_conn_wait_timeout(struct rpma_conn *conn, int timeout_ms, struct rpma_cq **cq,
			   bool *is_rcq)
{
	struct ibv_cq *announced;
	int ret;

	if (!conn || !cq || timeout_ms < -1)
		return INVALID();
	if (!conn->queues.shared_channel)
		return conn_not_shared();
	ret = cq_wait_channel(conn->prov, conn->queues.shared_channel, timeout_ms, &announced);
	return ret ? ret : conn_take_announcement(conn, announced, cq, is_rcq);
}
