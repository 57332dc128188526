/* SPDX-License-Identifier: BSD-3-Clause */
/* Connects a session to its server. */
#include <stdio.h>
#include <string.h>

#include "base/poll.h"
#include "regions/session_impl.h"
#include "service/peer.h"

#define CONNECT_ADDRESSES 8
#define CONNECT_PAUSE_MS  50
#define CONNECT_REFUSED   1 /* a result of this file; librpma's results are negative */

struct connect_attempt {
	struct session *s;
	const struct session_opts *opts;
};

/* The device calls this after it has made the request. If the session uses messages, register
 * their memory and post receives. */
static int connect_prepare(struct rpma_conn_req *req, void *arg)
{
	const struct connect_attempt *attempt = arg;
	const struct session_opts *opts = attempt->opts;
	int rc;

	attempt->s->is_requested = true;
	if (!opts->secret && opts->access != HELLO_LIST && opts->access != HELLO_WRITE)
		return 0;
	rc = session_messages_register(attempt->s);
	return rc ? rc : session_messages_receive(attempt->s, req);
}

static int connect_open(struct session *s, const struct session_opts *opts,
			const struct address *to, const struct rpma_conn_cfg *cfg)
{
	uint8_t buf[HELLO_MAX];
	struct hello_request hello = {.version = HELLO_VERSION,
				      .access = (uint8_t)opts->access,
				      .has_secret = opts->secret != NULL};
	struct rpma_conn_private_data pdata = {.ptr = buf};
	struct connect_attempt attempt = {s, opts};
	struct rpma_conn_open_attr attr = {.size = sizeof(attr),
					   .addr = to->host,
					   .port = to->port,
					   .cfg = cfg,
					   .pdata = &pdata,
					   .timeout_ms = opts->timeout_ms,
					   .prepare = connect_prepare,
					   .arg = &attempt};
	enum rpma_conn_event event;
	int rc;

	s->is_requested = false;
	snprintf(hello.region, sizeof(hello.region), "%s", opts->region);
	pdata.len = (uint8_t)hello_request_encode(&hello, buf);
	rc = rpma_conn_open(s->peer, &attr, &event, &s->conn);
	return rc || event == RPMA_CONN_ESTABLISHED ? rc : CONNECT_REFUSED;
}

static int connect_from_peer(struct session *s, const struct session_opts *opts,
			     const struct address *to)
{
	struct rpma_conn_cfg *cfg;
	int rc = rpma_conn_cfg_new(&cfg);

	if (rc)
		return rc;
	rpma_conn_cfg_set_sq_size(cfg, opts->depth);
	/* the queue also gets completions of messages */
	rpma_conn_cfg_set_cq_size(cfg, opts->depth + SESSION_ANSWERS + 1);
	if (opts->owner)
		rc = rpma_conn_cfg_set_owner(cfg, opts->owner, strlen(opts->owner));
	if (!rc)
		rc = connect_open(s, opts, to, cfg);
	rpma_conn_cfg_delete(&cfg);
	return rc;
}

/* Returns librpma's result, or CONNECT_REFUSED. */
static int connect_address(struct session *s, const struct session_opts *opts,
			   const struct address *to)
{
	struct ibv_context *context;
	int rc = peer_open_to(to->host, &context, &s->peer);

	if (!rc)
		s->device = context->device->name;
	if (!rc)
		rc = connect_from_peer(s, opts, to);
	if (rc) {
		rpma_conn_delete(&s->conn);
		rpma_mr_dereg(&s->message_mr);
		rpma_peer_delete(&s->peer);
	}
	return rc;
}

static int connect_failed(const struct session *s, int rc, struct error *err)
{
	/* Before a request was made, this error means that this end's device does not support owner
	 * names. Afterwards it means that the other end is no RDMA server. */
	if (rc == RPMA_E_NOSUPP && !s->is_requested)
		return error_set(err, ERROR_LOCAL, rc, "%s: %s", s->server, rpma_err_last());
	switch (rc) {
	case CONNECT_REFUSED:
		return error_set(
			err, ERROR_REFUSED, HELLO_BUSY,
			"%s rejects the connection without a reason: it is busy with many other "
			"clients, or it is not an 'rpma serve'",
			s->server);
	/* the other end refused, or accepted and disconnected immediately; it may be a program of
	 * another kind */
	case RPMA_E_AGAIN:
		return error_set(err, ERROR_UNREACHED, 0, "%s: %s", s->server, rpma_err_last());
	case RPMA_E_NO_EVENT:
		return error_set(err, ERROR_UNREACHED, 0, "%s does not answer: %s", s->server,
				 rpma_err_last());
	default:
		return error_set(err, ERROR_UNREACHED, rc, "cannot connect to %s: %s", s->server,
				 rpma_err_last());
	}
}

/* Try each address: a name may have several addresses, and the server may listen at only one of
 * them. */
static int connect_any(struct session *s, const struct session_opts *opts,
		       const struct address *found, int count)
{
	int rc = RPMA_E_AGAIN;

	for (int i = 0; i < count; i++) {
		rc = connect_address(s, opts, &found[i]);
		if (!rc)
			break;
	}
	return rc;
}

int session_connect(struct session *s, const struct session_opts *opts, struct error *err)
{
	uint64_t deadline = poll_deadline(opts->retry_ms);
	struct address found[CONNECT_ADDRESSES];
	int count, rc = address_resolve(&opts->server, found, CONNECT_ADDRESSES, &count, err);

	if (rc)
		return rc;
	while ((rc = connect_any(s, opts, found, count)) != 0) {
		bool unanswered = rc == RPMA_E_AGAIN || rc == RPMA_E_NO_EVENT;

		if (!unanswered || poll_ms_left(deadline) == 0)
			return connect_failed(s, rc, err);
		poll(NULL, 0, CONNECT_PAUSE_MS);
	}
	return 0;
}
