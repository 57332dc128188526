/* SPDX-License-Identifier: BSD-3-Clause */
/* How a session finds its server. */
#include <stdio.h>
#include <string.h>

#include "base/poll.h"
#include "session/impl.h"

#define CONNECT_ADDRESSES 8
#define CONNECT_PAUSE_MS  50

/* How an attempt ended, where it did. */
struct connect_outcome {
	int rc; /* librpma's */
	enum rpma_conn_event event;
};

static bool connect_has_messages(const struct session_opts *opts)
{
	return opts->secret || opts->access == HELLO_LIST || opts->access == HELLO_WRITE;
}

static int connect_make_request(struct session *s, const struct session_opts *opts,
				const struct address *to, struct rpma_conn_req **req)
{
	struct rpma_conn_cfg *cfg;
	int rc = rpma_conn_cfg_new(&cfg);

	if (rc)
		return rc;
	rpma_conn_cfg_set_sq_size(cfg, opts->depth);
	rpma_conn_cfg_set_cq_size(cfg, opts->depth + 3); /* messages, too */
	rc = rpma_conn_req_new(s->peer, to->host, to->port, cfg, req);
	rpma_conn_cfg_delete(&cfg);
	if (!rc && connect_has_messages(opts)) {
		rc = session_messages_register(s);
		if (!rc)
			rc = session_messages_receive(s, *req);
		if (rc)
			rpma_conn_req_delete(req);
	}
	return rc;
}

static int connect_send_request(struct session *s, const struct session_opts *opts,
				struct rpma_conn_req **req)
{
	uint8_t buf[HELLO_MAX];
	struct hello_request hello = {.version = HELLO_VERSION,
				      .access = (uint8_t)opts->access,
				      .has_secret = opts->secret != NULL};
	struct rpma_conn_private_data pdata = {.ptr = buf};

	snprintf(hello.region, sizeof(hello.region), "%s", opts->region);
	pdata.len = (uint8_t)hello_request_encode(&hello, buf);
	return rpma_conn_req_connect(req, &pdata, &s->conn);
}

static void connect_undo(struct session *s)
{
	rpma_conn_delete(&s->conn);
	rpma_mr_dereg(&s->message_mr);
	rpma_peer_delete(&s->peer);
}

static bool connect_address(struct session *s, const struct session_opts *opts,
			    const struct address *to, struct connect_outcome *out)
{
	struct ibv_context *context;
	struct rpma_conn_req *req;

	out->event = RPMA_CONN_UNDEFINED;
	out->rc = rpma_utils_get_ibv_context(to->host, RPMA_UTIL_IBV_CONTEXT_REMOTE, &context);
	if (!out->rc)
		out->rc = rpma_peer_new(context, &s->peer);
	if (!out->rc)
		out->rc = connect_make_request(s, opts, to, &req);
	if (!out->rc)
		out->rc = connect_send_request(s, opts, &req);
	if (!out->rc)
		out->rc = rpma_conn_next_event_timeout(s->conn, opts->timeout_ms, &out->event);
	if (out->rc == RPMA_E_NO_EVENT) {
		out->rc = 0;
		out->event = RPMA_CONN_UNREACHABLE;
	}
	if (!out->rc && out->event == RPMA_CONN_ESTABLISHED)
		return true;
	connect_undo(s);
	return false;
}

static int connect_failed(const struct session *s, const struct connect_outcome *out,
			  struct error *err)
{
	if (out->rc)
		return error_set(err, ERROR_UNREACHED, out->rc, "cannot connect to %s: %s",
				 s->server, rpma_err_2str(out->rc));
	if (out->event == RPMA_CONN_REJECTED)
		return error_set(err, ERROR_UNREACHED, 0,
				 "%s refused the connection: is the server running there?",
				 s->server);
	if (out->event == RPMA_CONN_UNREACHABLE)
		return error_set(err, ERROR_UNREACHED, 0,
				 "%s does not answer: check the address and firewalls", s->server);
	return error_set(err, ERROR_UNREACHED, 0,
			 "cannot connect to %s: the connection was lost during start-up",
			 s->server);
}

/* A name may have several addresses, and the server may listen on one of them only. */
static bool connect_any(struct session *s, const struct session_opts *opts,
			const struct address *found, int count, struct connect_outcome *out)
{
	for (int i = 0; i < count; i++)
		if (connect_address(s, opts, &found[i], out))
			return true;
	return false;
}

int session_connect(struct session *s, const struct session_opts *opts, struct error *err)
{
	uint64_t deadline = poll_deadline(opts->retry_ms);
	struct address found[CONNECT_ADDRESSES];
	struct connect_outcome out;
	int count, rc = address_resolve(&opts->server, found, CONNECT_ADDRESSES, &count, err);

	if (rc)
		return rc;
	while (!connect_any(s, opts, found, count, &out)) {
		if (out.rc || out.event != RPMA_CONN_REJECTED || poll_ms_left(deadline) == 0)
			return connect_failed(s, &out, err);
		poll(NULL, 0, CONNECT_PAUSE_MS);
	}
	return 0;
}
