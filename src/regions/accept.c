/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles incoming connection requests, until they are accepted with an answer or dropped. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "regions/server_impl.h"

static enum client_state accept_state(enum hello_status status, enum hello_access access)
{
	if (status == HELLO_PROVE)
		return CLIENT_PROVING;
	if (status != HELLO_OK)
		return CLIENT_REFUSED;
	return access == HELLO_LIST ? CLIENT_LISTING : CLIENT_SERVED;
}

static int accept_answer(struct client *client, struct rpma_conn_req **req,
			 enum hello_status status)
{
	const struct region_export *e = NULL;
	uint8_t buf[HELLO_MAX];
	struct rpma_conn_private_data ours = {.ptr = buf};
	struct hello_reply reply;

	if (client->state == CLIENT_SERVED)
		e = client->own.mr ? &client->own : &client->region->shared[client->request.access];
	admission_make_reply(status, client->region, e, &reply);
	if (status == HELLO_PROVE) {
		secret_nonce(client->nonce);
		memcpy(reply.nonce, client->nonce, HELLO_NONCE);
	}
	ours.len = (uint8_t)hello_reply_encode(&reply, buf);
	return rpma_conn_req_connect(req, &ours, &client->conn);
}

static enum hello_status accept_check(struct server *s, struct client *client,
				      struct rpma_conn_req *req)
{
	struct rpma_conn_private_data theirs = {0};
	enum hello_status status;

	rpma_conn_req_get_remote_addr(req, client->addr, sizeof(client->addr));
	rpma_conn_req_get_private_data(req, &theirs);
	status = admission_check_request(s, &theirs, &client->request);
	if (status == HELLO_OK)
		status = admission_check(s, &client->request, client->addr, &client->region);
	client->state = accept_state(status, (enum hello_access)client->request.access);
	if (client->state == CLIENT_REFUSED)
		admission_note_refusal(s, status, client);
	return status;
}

/* Returns true if the client was killed or interrupted before its answer. The operator needs no
 * line about such an event. librpma reports the event only in its error text. */
static bool accept_was_left(void)
{
	return strstr(rpma_err_last(), strerror(ECONNRESET)) != NULL;
}

/* Returns 0 if the request was accepted: then *req is NULL, and client->conn is set. */
static int accept_request(struct server *s, struct client *client, struct rpma_conn_req **req)
{
	enum hello_status status = accept_check(s, client, *req);
	bool is_pending = client_arrival(client) == ARRIVAL_PENDING;
	bool is_writer = client->state == CLIENT_SERVED && client->request.access == HELLO_WRITE;
	int rc = 0;

	if (client->state == CLIENT_REFUSED &&
	    s->arrivals.count[ARRIVAL_REFUSED] >= SERVER_REFUSED_MAX)
		return RPMA_E_AGAIN; /* rejected without a reason */
	if (is_pending)
		clients_make_room(s, client->addr);
	if (is_pending || is_writer)
		rc = message_open(s, client, *req);
	if (!rc && is_writer)
		rc = region_export_new(s, client->region, HELLO_WRITE, &client->own);
	if (!rc)
		rc = accept_answer(client, req, status);
	if (rc && (s->opts->verbose || !accept_was_left()))
		server_note_limited(s, LOG_LVL_ERROR, &s->not_accepted,
				    "client %" PRIu64 " from %s could not be accepted: %s",
				    client->id, client->addr, rpma_err_last());
	return rc;
}

void accept_on_request(struct server *s)
{
	struct rpma_conn_req *req;
	struct client *client;
	int rc = rpma_ep_next_conn_req(s->ep, NULL, &req);

	if (rc) {
		if (rc != RPMA_E_NO_EVENT && s->opts->verbose)
			server_note(s, LOG_LVL_ERROR, "a connection request was lost: %s",
				    rpma_err_last());
		return;
	}
	client = calloc(1, sizeof(*client));
	if (!client) {
		rpma_conn_req_delete(&req);
		return;
	}
	client->id = ++s->next_id;
	rc = accept_request(s, client, &req);
	if (!rc) {
		client_adopt(s, client);
		return;
	}
	rpma_conn_req_delete(&req);
	client_free(client);
}
