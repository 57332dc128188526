/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and ends a server, and runs its event loop. */
#include "regions/server.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "regions/server_impl.h"
#include "service/listen.h"
#include "service/peer.h"

/* Largest number of events that are handled in one step, so that the server's caller is not delayed
 * for long. */
#define SERVER_EVENTS 64

/* The epoll tags of the descriptors that belong to no client. */
static char server_tag_listener, server_tag_names;

static int server_listen(struct server *s, struct error *err)
{
	int fd, rc = peer_listen(s->peer, &s->listen, &s->ep, &fd, err);

	if (rc)
		return rc;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0 || peer_watch(s->epoll_fd, fd, &server_tag_listener) ||
	    peer_watch(s->epoll_fd, s->name_fd, &server_tag_names))
		return error_set(err, ERROR_LOCAL, errno, "epoll: %s", strerror(errno));
	return 0;
}

static int server_open(struct server *s, struct error *err)
{
	struct ibv_context *context;
	int rc = listen_check(&s->listen, err);

	if (!rc)
		rc = regions_open(s, err);
	if (!rc)
		contents_load(s);
	if (!rc)
		rc = names_open(s, err);
	if (!rc)
		rc = peer_open_at(s->listen.host, &context, &s->peer, err);
	if (!rc)
		rc = regions_register(s, context, err);
	return rc ? rc : server_listen(s, err);
}

static int server_check_name(const struct server_opts *opts, unsigned index, struct error *err)
{
	const char *name = opts->files[index].name;

	if (!name[0] || strlen(name) > HELLO_NAME_MAX)
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "'%s' is not a name of 1 to %d characters for a region", name,
				 HELLO_NAME_MAX);
	for (unsigned i = 0; i < index; i++)
		if (!strcmp(opts->files[i].name, name))
			return error_set(err, ERROR_ARGUMENT, EEXIST,
					 "two regions are named '%s': give another name to one",
					 name);
	return 0;
}

static int server_check_opts(const struct server_opts *opts, struct error *err)
{
	int rc = 0;

	if (opts->file_count < 1 || opts->file_count > SERVER_REGIONS_MAX)
		return error_set(err, ERROR_ARGUMENT, EINVAL, "%u files are not 1 to %d",
				 opts->file_count, SERVER_REGIONS_MAX);
	for (unsigned i = 0; i < opts->file_count && !rc; i++)
		rc = server_check_name(opts, i, err);
	return rc;
}

int server_new(const struct server_opts *opts, struct server **server, struct error *err)
{
	int rc = server_check_opts(opts, err);
	struct server *s;

	*server = NULL;
	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for a server");
	s->opts = opts;
	s->listen = opts->listen;
	s->epoll_fd = s->name_fd = -1;
	arrivals_init(&s->arrivals);
	rc = server_open(s, err);
	if (rc)
		server_delete(&s, false);
	*server = s;
	return rc;
}

void server_delete(struct server **server, bool keep)
{
	struct server *s = *server;

	if (!s)
		return;
	clients_forget_all(s);
	rpma_ep_shutdown(&s->ep);
	regions_unregister(s);
	rpma_peer_delete(&s->peer);
	names_close(s);
	regions_close(s, keep);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	free(s);
	*server = NULL;
}

static void server_on_client_event(struct server *s, struct client *client)
{
	enum rpma_conn_event event;

	if (rpma_conn_next_event(client->conn, &event))
		return;
	if (event == RPMA_CONN_ESTABLISHED) {
		client->is_up = true;
		if (client->state == CLIENT_REFUSED)
			rpma_conn_disconnect(client->conn);
		else if (client->state == CLIENT_SERVED && !s->opts->secret)
			client_note_served(s, client);
		name_send_verdict(s, client, 0);
		return;
	}
	if (s->opts->verbose && client->state == CLIENT_SERVED)
		server_note(s, LOG_LVL_NOTICE, "client %" PRIu64 ": %s", client->id,
			    rpma_utils_conn_event_2str(event));
	client_forget(s, client);
}

static void server_on_event(struct server *s, void *tag)
{
	const struct client_watch *watch = tag;

	if (tag == &server_tag_listener)
		accept_on_request(s);
	else if (tag == &server_tag_names)
		names_on_answer(s);
	else if (watch->is_message)
		protocol_on_ready(s, watch->client);
	else
		server_on_client_event(s, watch->client);
}

static int server_sooner(int a_ms, int b_ms)
{
	if (a_ms < 0 || b_ms < 0)
		return a_ms < 0 ? b_ms : a_ms;
	return a_ms < b_ms ? a_ms : b_ms;
}

int server_step(struct server *s, int *next_ms, struct error *err)
{
	struct epoll_event ev;
	int n = 1;

	/* Take one event at a time: handling an event may delete the object of another event. */
	for (int i = 0; i < SERVER_EVENTS && n > 0; i++) {
		n = epoll_wait(s->epoll_fd, &ev, 1, 0);
		if (n > 0)
			server_on_event(s, ev.data.ptr);
	}
	if (n < 0 && errno != EINTR)
		return error_set(err, ERROR_FAILED, errno, "epoll: %s", strerror(errno));
	*next_ms = server_sooner(clients_forget_overdue(s), names_tick(s));
	*next_ms = server_sooner(*next_ms, contents_tick(s));
	return 0;
}

int server_get_fd(const struct server *s)
{
	return s->epoll_fd;
}

const struct address *server_get_address(const struct server *s)
{
	return &s->listen;
}

bool server_get_region(const struct server *s, unsigned index, struct server_region_info *info)
{
	const struct region *r = &s->regions[index];

	if (index >= s->region_count)
		return false;
	*info = (struct server_region_info){r->name, r->path, r->data.size, r->data.durability};
	return true;
}

void server_for_each_client(const struct server *s,
			    void (*fn)(void *arg, const struct server_client_info *info), void *arg)
{
	for (const struct client *client = s->first; client; client = client->next) {
		struct counters counters = {.count = 0};
		struct server_client_info info = {.id = client->id,
						  .addr = client->addr,
						  .access =
							  (enum hello_access)client->request.access,
						  .counters = &counters};

		if (client->state != CLIENT_SERVED)
			continue;
		info.region = client->region->name;
		counters_add_conn(&counters, client->conn);
		fn(arg, &info);
	}
}

uint64_t server_get_gone(const struct server *s, struct counters *sum)
{
	*sum = s->gone;
	return s->gone_count;
}
