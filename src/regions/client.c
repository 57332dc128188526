/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "regions/server_impl.h"

uint64_t clients_now_ms(void)
{
	return clock_now_ns() / NSEC_PER_MS;
}

bool client_is_pending(const struct client *client)
{
	return client->state == CLIENT_PROVING || client->state == CLIENT_LISTING;
}

/* Neither a refused client nor a pending one takes a place away from those that are served. */
static unsigned *client_count(struct server *s, const struct client *client)
{
	if (client_is_pending(client))
		return &s->pending;
	return client->state == CLIENT_SERVED ? &s->served : &s->refused;
}

void client_enter(struct server *s, struct client *client, enum client_state state)
{
	(*client_count(s, client))--;
	client->state = state;
	(*client_count(s, client))++;
}

void client_note_served(const struct server *s, const struct client *client)
{
	if (s->opts->verbose)
		server_note(s, "client %" PRIu64 " from %s connected to '%s'", client->id,
			    client->addr, client->region->name);
}

/* Behind it nothing of the client is placed any more, and its range may go to another writer: its
 * registration was its own, and deregistering waits for what is being placed. */
void client_free(struct client *client)
{
	rpma_conn_delete(&client->conn);
	rpma_mr_dereg(&client->message_mr);
	rpma_mr_dereg(&client->own.mr);
	free(client);
}

void client_forget(struct server *s, struct client *client)
{
	struct client **at = &s->first;

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	(*client_count(s, client))--;
	s->waiting -= client->waits_ms != 0;
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, client->event_fd, NULL);
	if (client->cq_fd >= 0)
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, client->cq_fd, NULL);
	if (client->state == CLIENT_SERVED) {
		counters_add_conn(&s->gone, client->conn);
		s->gone_count++;
	}
	rpma_conn_disconnect(client->conn);
	client_free(client);
}

void clients_forget_all(struct server *s)
{
	while (s->first)
		client_forget(s, s->first);
}

static int client_watch_fd(struct server *s, int fd, struct client_watch *watch)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = watch};

	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

static int client_watch(struct server *s, struct client *client)
{
	int rc;

	client->on_event = (struct client_watch){client, false};
	client->on_message = (struct client_watch){client, true};
	client->cq_fd = -1;
	rpma_conn_get_event_fd(client->conn, &client->event_fd);
	rc = client_watch_fd(s, client->event_fd, &client->on_event);
	if (rc || !client->message_mr)
		return rc;
	rpma_conn_get_cq(client->conn, &client->cq);
	rpma_cq_get_fd(client->cq, &client->cq_fd);
	return client_watch_fd(s, client->cq_fd, &client->on_message);
}

void client_adopt(struct server *s, struct client *client)
{
	client->next = s->first;
	s->first = client;
	client->deadline_ms = clients_now_ms() + SERVER_PENDING_MS;
	(*client_count(s, client))++;
	if (client_watch(s, client))
		client_forget(s, client);
}

uint64_t clients_count_from(const struct server *s, const char *addr)
{
	const struct client *client;
	uint64_t count = 0;

	for (client = s->first; client; client = client->next)
		count += client->state == CLIENT_SERVED && !strcmp(client->addr, addr);
	return count;
}

static struct client *clients_oldest_pending(const struct server *s, const char *addr,
					     unsigned *count)
{
	struct client *client, *oldest = NULL;

	*count = 0;
	for (client = s->first; client; client = client->next) {
		if (!client_is_pending(client) || (addr && strcmp(addr, client->addr)))
			continue;
		oldest = client;
		(*count)++;
	}
	return oldest;
}

static void clients_limit_pending(struct server *s, const char *addr, unsigned limit)
{
	unsigned count;
	struct client *oldest = clients_oldest_pending(s, addr, &count);

	if (count < limit)
		return;
	if (s->opts->verbose)
		server_note(s, "client %" PRIu64 " from %s has proved nothing and makes way",
			    oldest->id, oldest->addr);
	client_forget(s, oldest);
}

/* The oldest goes, so that slow clients cannot keep out a valid one, which finishes at once. */
void clients_make_room(struct server *s, const char *addr)
{
	clients_limit_pending(s, addr, SERVER_PENDING_PER_ADDRESS);
	clients_limit_pending(s, NULL, SERVER_PENDING_MAX);
}

int clients_forget_overdue(struct server *s)
{
	struct client *client, *next;
	uint64_t now = clients_now_ms(), nearest = UINT64_MAX;

	if (s->pending + s->refused == 0)
		return -1;
	for (client = s->first; client; client = next) {
		next = client->next;
		if (client->state == CLIENT_SERVED)
			continue;
		if (client->deadline_ms <= now)
			client_forget(s, client);
		else if (client->deadline_ms < nearest)
			nearest = client->deadline_ms;
	}
	return nearest == UINT64_MAX ? -1 : (int)(nearest - now);
}
