/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "cli.h"
#include "liblog.h"
#include "serve.h"

static enum hello_status judge(const struct serve *s, const struct rpma_conn_private_data *pdata,
			       struct hello_request *req)
{
	if (!hello_request_decode(pdata, req))
		return HELLO_BAD_REQUEST;
	if (req->version != HELLO_VERSION)
		return HELLO_BAD_VERSION;
	if (req->access < HELLO_READ || req->access > HELLO_SCRATCH)
		return HELLO_BAD_REQUEST;
	if (req->region[0] && strcmp(req->region, s->opts->region))
		return HELLO_NO_REGION;
	if (s->clients >= s->opts->max_clients)
		return HELLO_BUSY;
	return HELLO_OK;
}

static void log_refusal(enum hello_status status, uint64_t id, const struct hello_request *req)
{
	static const char *const reasons[] = {
		[HELLO_BAD_VERSION] = "speaks another version of the protocol",
		[HELLO_NO_REGION] = "wants an unknown region",
		[HELLO_BUSY] = "is one more than --max-clients",
		[HELLO_BAD_REQUEST] = "does not greet like a client of rpma",
	};

	cli_note("refused client %" PRIu64 ": it %s%s%s", id, reasons[status],
		 status == HELLO_NO_REGION ? ": " : "",
		 status == HELLO_NO_REGION ? req->region : "");
}

static size_t make_reply(const struct serve *s, enum hello_status status,
			 const struct hello_request *req, uint8_t *buf)
{
	struct hello_reply reply = {.version = HELLO_VERSION,
				    .status = (uint8_t)status,
				    .durability = (uint8_t)s->data.durability};

	memcpy(reply.region, s->opts->region, sizeof(reply.region));
	if (status == HELLO_OK) {
		const struct serve_export *e = &s->exports[req->access];

		reply.size = e->size;
		reply.mr_len = e->desc_len;
		memcpy(reply.mr, e->desc, e->desc_len);
		reply.pcfg_len = s->pcfg_len;
		memcpy(reply.pcfg, s->pcfg, s->pcfg_len);
	}
	return hello_reply_encode(&reply, buf);
}

/* A refused client takes no place away from those that are served. */
static unsigned *count_of(struct serve *s, bool refused)
{
	return refused ? &s->refused : &s->clients;
}

static void forget(struct serve *s, struct serve_client *client)
{
	struct serve_client **at = &s->first;

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	(*count_of(s, client->refused))--;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, client->event_fd, NULL);
	rpma_conn_disconnect(client->conn);
	rpma_conn_delete(&client->conn);
	free(client);
}

static int watch(struct serve *s, struct serve_client *client)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = client};

	rpma_conn_get_event_fd(client->conn, &client->event_fd);
	fcntl(client->event_fd, F_SETFL, fcntl(client->event_fd, F_GETFL) | O_NONBLOCK);
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, client->event_fd, &ev);
}

static void adopt(struct serve *s, struct rpma_conn *conn, bool refused)
{
	struct serve_client *client = calloc(1, sizeof(*client));

	if (!client) {
		rpma_conn_delete(&conn);
		return;
	}
	*client = (struct serve_client){
		.next = s->first, .conn = conn, .id = s->next_id, .refused = refused};
	s->first = client;
	(*count_of(s, refused))++;
	if (watch(s, client))
		forget(s, client);
}

static void accept_request(struct serve *s, struct rpma_conn_req *req)
{
	uint8_t buf[HELLO_MAX];
	struct rpma_conn_private_data theirs = {0}, ours = {.ptr = buf};
	struct hello_request hello;
	struct rpma_conn *conn;
	enum hello_status status;
	int rc;

	s->next_id++;
	rpma_conn_req_get_private_data(req, &theirs);
	status = judge(s, &theirs, &hello);
	if (status != HELLO_OK)
		log_refusal(status, s->next_id, &hello);
	if (status != HELLO_OK && s->refused >= SERVE_REFUSED_MAX) {
		rpma_conn_req_delete(&req);
		return;
	}
	ours.len = (uint8_t)make_reply(s, status, &hello, buf);
	rc = rpma_conn_req_connect(&req, &ours, &conn);
	if (rc)
		cli_note("client %" PRIu64 " could not be accepted: %s", s->next_id,
			 liblog_reason(rc));
	else
		adopt(s, conn, status != HELLO_OK);
}

void serve_on_request(struct serve *s)
{
	struct rpma_conn_req *req;
	int rc = rpma_ep_next_conn_req(s->ep, NULL, &req);

	if (!rc)
		accept_request(s, req);
	else if (rc != RPMA_E_NO_EVENT && s->opts->verbose)
		cli_note("a connection request was lost: %s", liblog_reason(rc));
}

void serve_on_event(struct serve *s, struct serve_client *client)
{
	enum rpma_conn_event event;

	if (rpma_conn_next_event(client->conn, &event))
		return;
	if (event == RPMA_CONN_ESTABLISHED) {
		if (client->refused)
			rpma_conn_disconnect(client->conn);
		else if (s->opts->verbose)
			cli_note("client %" PRIu64 " connected", client->id);
		return;
	}
	if (s->opts->verbose && !client->refused)
		cli_note("client %" PRIu64 ": %s", client->id, rpma_utils_conn_event_2str(event));
	forget(s, client);
}

void serve_drop_all(struct serve *s)
{
	while (s->first)
		forget(s, s->first);
}
