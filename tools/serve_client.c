/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "cli.h"
#include "liblog.h"
#include "note_limit.h"
#include "serve.h"

uint64_t serve_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static bool is_guest(const struct serve_client *client)
{
	return client->state == SERVE_PROVING || client->state == SERVE_LISTING;
}

/* Neither a refused client nor a guest takes a place away from those that are served. */
static unsigned *count_of(struct serve *s, const struct serve_client *client)
{
	if (is_guest(client))
		return &s->guests;
	return client->state == SERVE_SERVED ? &s->clients : &s->refused;
}

static void note_coming(const struct serve *s, const struct serve_client *client)
{
	if (s->opts->verbose)
		cli_note("client %" PRIu64 " from %s connected to '%s'", client->id, client->addr,
			 client->region->name);
}

void serve_enter(struct serve *s, struct serve_client *client, enum serve_state state)
{
	(*count_of(s, client))--;
	client->state = state;
	(*count_of(s, client))++;
	if (state == SERVE_SERVED)
		note_coming(s, client);
}

static void release(struct serve_client *client)
{
	rpma_conn_delete(&client->conn);
	rpma_mr_dereg(&client->mail_mr);
	rpma_mr_dereg(&client->own.mr);
	free(client);
}

void serve_forget(struct serve *s, struct serve_client *client)
{
	struct serve_client **at = &s->first;

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	(*count_of(s, client))--;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, client->event_fd, NULL);
	if (client->cq_fd >= 0)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, client->cq_fd, NULL);
	if (client->state == SERVE_SERVED) {
		tally_add(&s->gone, client->conn);
		s->gone_count++;
	}
	rpma_conn_disconnect(client->conn);
	release(client);
}

static int watch_fd(struct serve *s, int fd, struct serve_watch *watch)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = watch};

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

static int watch(struct serve *s, struct serve_client *client)
{
	int rc;

	client->on_event = (struct serve_watch){client, false};
	client->on_message = (struct serve_watch){client, true};
	client->cq_fd = -1;
	rpma_conn_get_event_fd(client->conn, &client->event_fd);
	rc = watch_fd(s, client->event_fd, &client->on_event);
	if (rc || !client->mail_mr)
		return rc;
	rpma_conn_get_cq(client->conn, &client->cq);
	rpma_cq_get_fd(client->cq, &client->cq_fd);
	return watch_fd(s, client->cq_fd, &client->on_message);
}

static struct serve_client *oldest_guest(const struct serve *s, const char *addr, unsigned *count)
{
	struct serve_client *client, *oldest = NULL;

	*count = 0;
	for (client = s->first; client; client = client->next) {
		if (!is_guest(client) || (addr && strcmp(addr, client->addr)))
			continue;
		oldest = client;
		(*count)++;
	}
	return oldest;
}

static void make_way(struct serve *s, const char *addr, unsigned limit)
{
	unsigned count;
	struct serve_client *oldest = oldest_guest(s, addr, &count);

	if (count < limit)
		return;
	if (s->opts->verbose)
		cli_note("client %" PRIu64 " from %s has proved nothing and makes way", oldest->id,
			 oldest->addr);
	serve_forget(s, oldest);
}

/* The oldest goes, so that slow ones cannot keep out an honest one, who is done at once. */
static void make_room_for_guest(struct serve *s, const char *addr)
{
	make_way(s, addr, SERVE_GUESTS_PER_ADDRESS);
	make_way(s, NULL, SERVE_GUESTS_MAX);
}

static enum serve_state state_for(enum hello_status status, enum hello_access access)
{
	if (status == HELLO_PROVE)
		return SERVE_PROVING;
	if (status != HELLO_OK)
		return SERVE_REFUSED;
	return access == HELLO_LIST ? SERVE_LISTING : SERVE_SERVED;
}

static int prepare_mail(struct serve *s, struct serve_client *client, struct rpma_conn_req *req)
{
	if (is_guest(client))
		make_room_for_guest(s, client->addr);
	else if (client->state != SERVE_SERVED || client->request.access != HELLO_WRITE)
		return 0;
	return serve_mail_open(s, client, req);
}

static int answer(struct serve *s, struct serve_client *client, struct rpma_conn_req **req,
		  enum hello_status status)
{
	const struct serve_export *e = NULL;
	uint8_t buf[HELLO_MAX];
	struct rpma_conn_private_data ours = {.ptr = buf};
	struct hello_reply reply;

	if (client->state == SERVE_SERVED)
		e = &client->region->shared[client->request.access];
	serve_make_reply(status, client->region, e, &reply);
	if (status == HELLO_PROVE) {
		secret_nonce(client->nonce);
		memcpy(reply.nonce, client->nonce, HELLO_NONCE);
	}
	ours.len = (uint8_t)hello_reply_encode(&reply, buf);
	return rpma_conn_req_connect(req, &ours, &client->conn);
}

static void adopt(struct serve *s, struct serve_client *client)
{
	client->next = s->first;
	s->first = client;
	client->deadline_ms = serve_now_ms() + SERVE_GUEST_MS;
	(*count_of(s, client))++;
	if (watch(s, client))
		serve_forget(s, client);
}

static enum hello_status judge(struct serve *s, struct serve_client *client,
			       struct rpma_conn_req *req)
{
	struct rpma_conn_private_data theirs = {0};
	enum hello_status status;

	rpma_conn_req_get_remote_addr(req, client->addr, sizeof(client->addr));
	rpma_conn_req_get_private_data(req, &theirs);
	status = serve_judge(s, &theirs, &client->request);
	if (status == HELLO_OK)
		status = serve_judge_wish(s, &client->request, client->addr, &client->region);
	client->state = state_for(status, client->request.access);
	if (client->state == SERVE_REFUSED)
		serve_log_refusal(status, client->id, client->addr, &client->request);
	return status;
}

static void accept_request(struct serve *s, struct rpma_conn_req *req)
{
	static struct note_limit limit;
	struct serve_client *client = calloc(1, sizeof(*client));
	enum hello_status status;
	int rc;

	if (!client) {
		rpma_conn_req_delete(&req);
		return;
	}
	client->id = ++s->next_id;
	status = judge(s, client, req);
	if (client->state == SERVE_REFUSED && s->refused >= SERVE_REFUSED_MAX) {
		rpma_conn_req_delete(&req);
		release(client);
		return;
	}
	rc = prepare_mail(s, client, req);
	if (!rc)
		rc = answer(s, client, &req, status);
	if (!rc) {
		adopt(s, client);
		return;
	}
	note_limited(&limit, "client %" PRIu64 " from %s could not be accepted: %s", client->id,
		     client->addr, liblog_reason(rc));
	rpma_conn_req_delete(&req);
	release(client);
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

static void on_event(struct serve *s, struct serve_client *client)
{
	enum rpma_conn_event event;

	if (rpma_conn_next_event(client->conn, &event))
		return;
	if (event == RPMA_CONN_ESTABLISHED) {
		client->is_up = true;
		if (client->state == SERVE_REFUSED)
			rpma_conn_disconnect(client->conn);
		else if (client->state == SERVE_SERVED && !s->has_secret)
			note_coming(s, client);
		serve_name_tell(s, client, 0);
		return;
	}
	if (s->opts->verbose && client->state == SERVE_SERVED)
		cli_note("client %" PRIu64 ": %s", client->id, rpma_utils_conn_event_2str(event));
	serve_forget(s, client);
}

void serve_on_watch(struct serve *s, struct serve_watch *watch)
{
	if (watch->is_message)
		serve_mail_on_ready(s, watch->client);
	else
		on_event(s, watch->client);
}

int serve_drop_overdue(struct serve *s)
{
	struct serve_client *client, *next;
	uint64_t now = serve_now_ms(), nearest = UINT64_MAX;

	if (s->guests + s->refused == 0)
		return -1;
	for (client = s->first; client; client = next) {
		next = client->next;
		if (client->state == SERVE_SERVED)
			continue;
		if (client->deadline_ms <= now)
			serve_forget(s, client);
		else if (client->deadline_ms < nearest)
			nearest = client->deadline_ms;
	}
	return nearest == UINT64_MAX ? -1 : (int)(nearest - now);
}

void serve_drop_all(struct serve *s)
{
	while (s->first)
		serve_forget(s, s->first);
}
