/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "regions/server_impl.h"
#include "service/peer.h"

uint64_t clients_now_ms(void)
{
	return clock_now_ns() / NSEC_PER_MS;
}

enum arrival_state client_arrival(const struct client *client)
{
	static const enum arrival_state states[] = {[CLIENT_REFUSED] = ARRIVAL_REFUSED,
						    [CLIENT_PROVING] = ARRIVAL_PENDING,
						    [CLIENT_LISTING] = ARRIVAL_PENDING,
						    [CLIENT_SERVED] = ARRIVAL_ADMITTED};

	return states[client->state];
}

void client_enter(struct server *s, struct client *client, enum client_state state)
{
	client->state = state;
	arrivals_enter(&s->arrivals, &client->arrival, client_arrival(client));
}

void client_note_served(const struct server *s, const struct client *client)
{
	if (s->opts->verbose)
		server_note(s, LOG_LVL_NOTICE, "client %" PRIu64 " from %s connected to '%s'",
			    client->id, client->addr, client->region->name);
}

/*
 * The device places no more bytes of the client after this call, so another writer may get the
 * client's range. The client has its own registration, and deregistering waits for bytes that are
 * being placed.
 */
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
	arrivals_remove(&s->arrivals, &client->arrival);
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

static int client_watch(struct server *s, struct client *client)
{
	int rc;

	client->on_event = (struct client_watch){client, false};
	client->on_message = (struct client_watch){client, true};
	client->cq_fd = -1;
	rpma_conn_get_event_fd(client->conn, &client->event_fd);
	rc = peer_watch(s->epoll_fd, client->event_fd, &client->on_event);
	if (rc || !client->message_mr)
		return rc;
	rpma_conn_get_cq(client->conn, &client->cq);
	rpma_cq_get_fd(client->cq, &client->cq_fd);
	return peer_watch(s->epoll_fd, client->cq_fd, &client->on_message);
}

void client_adopt(struct server *s, struct client *client)
{
	client->next = s->first;
	s->first = client;
	client->arrival = (struct arrival){.state = client_arrival(client),
					   .addr = client->addr,
					   .deadline = clients_now_ms() + SERVER_PENDING_MS};
	arrivals_add(&s->arrivals, &client->arrival);
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

void clients_make_room(struct server *s, const char *addr)
{
	struct arrival *one;

	while ((one = arrivals_surplus(&s->arrivals, addr, SERVER_PENDING_MAX))) {
		struct client *client = container_of(one, struct client, arrival);

		if (s->opts->verbose)
			server_note(s, LOG_LVL_NOTICE,
				    "client %" PRIu64
				    " from %s has not proved the secret and is closed to make room",
				    client->id, client->addr);
		client_forget(s, client);
	}
}

int clients_forget_overdue(struct server *s)
{
	uint64_t now = clients_now_ms(), nearest;
	struct arrival *one;

	while ((one = arrivals_overdue(&s->arrivals, now, &nearest)))
		client_forget(s, container_of(one, struct client, arrival));
	return nearest == UINT64_MAX ? -1 : (int)(nearest - now);
}
