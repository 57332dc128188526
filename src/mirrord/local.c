/* SPDX-License-Identifier: BSD-3-Clause */
/* Serves the UNIX socket: accepts clients, receives their packets, and sends the answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "mirror/core/killpoint.h"
#include "mirrord/clients.h"
#include "mirrord/requests.h"

static uint8_t local_buf[PACKET_MAX];
static struct packet local_packet; /* static, because it is large; one packet at a time */

struct client *local_find(struct daemon *d, uint64_t serial)
{
	struct client *client = d->clients;

	while (client && client->serial != serial)
		client = client->next;
	return client;
}

static void local_close_client(struct client *client)
{
	struct daemon *d = client->daemon;
	struct client **at = &d->clients;
	int fd = client->on_packet.fd;

	while (*at != client)
		at = &(*at)->next;
	*at = client->next;
	d->client_count--;
	request_end_promotion(client);
	map_on_lost(client);
	loop_unwatch(d, &client->on_packet);
	close(fd);
	free(client);
}

static void local_refuse_version(struct client *client)
{
	char who[64], text[PACKET_TEXT];

	snprintf(who, sizeof(who), "librpmirror of process %d", (int)client->pid);
	version_explain(local_packet.versions, who, "this host's rpmirrord", text, sizeof(text));
	LOG_WARNING_LIMITED("%s", text);
	local_send_done(client, local_packet.id, PACKET_VERSION, text);
}

static void local_on_packet(struct watch *w)
{
	struct client *client = w->owner;
	ssize_t n = recv(w->fd, local_buf, sizeof(local_buf), MSG_DONTWAIT | MSG_TRUNC);
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || (size_t)n > sizeof(local_buf) || client->is_dead) {
		local_close_client(client);
		return;
	}
	if (local_buf[0] == '{') {
		request_on_packet(client, (const char *)local_buf, (size_t)n);
		return;
	}
	rc = packet_decode(local_buf, (size_t)n, &local_packet);
	if (rc == -EPROTONOSUPPORT && local_packet.type == PACKET_MAP) {
		local_refuse_version(client);
		return;
	}
	if (!rc && local_packet.type == PACKET_MAP)
		client->version = version_agree(local_packet.versions, version_ours());
	if (!rc)
		rc = library_on_packet(client, &local_packet);
	if (rc) {
		LOG_WARNING_LIMITED("process %d sent an invalid message and is disconnected",
				    (int)client->pid);
		local_close_client(client);
	}
}

static bool local_has_room(struct daemon *d, uid_t uid)
{
	unsigned count = 0;

	for (const struct client *client = d->clients; client; client = client->next)
		count += client->uid == uid;
	return d->client_count < DAEMON_CLIENTS_MAX && (uid == 0 || count < DAEMON_CLIENTS_USER);
}

static void local_on_client(struct watch *w)
{
	struct daemon *d = w->owner;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct client *client;
	int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	client = calloc(1, sizeof(*client));
	if (!client || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) ||
	    !local_has_room(d, cred.uid) ||
	    loop_watch(d, &client->on_packet, fd, local_on_packet, client)) {
		LOG_WARNING_LIMITED("a process cannot be served at the socket");
		free(client);
		close(fd);
		return;
	}
	client->daemon = d;
	client->pid = cred.pid;
	client->uid = cred.uid;
	client->serial = ++d->next_serial;
	client->next = d->clients;
	d->clients = client;
	d->client_count++;
}

static int local_listen(const char *path, struct error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int probe;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "no socket: %s", strerror(errno));
	/*
	 * A killed daemon leaves its socket's name. If another daemon is alive, this connect
	 * succeeds.
	 */
	probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe >= 0 && !connect(probe, (struct sockaddr *)&addr, sizeof(addr))) {
		close(probe);
		close(fd);
		return error_set(err, ERROR_LOCAL, EADDRINUSE, "another daemon listens at %s",
				 path);
	}
	if (probe >= 0)
		close(probe);
	unlink(path);
	/* Any user may connect: each set has its own list of users that may map it. */
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || chmod(path, 0666) ||
	    listen(fd, 64)) {
		int rc = error_set(err, ERROR_LOCAL, errno, "cannot listen at %s: %s", path,
				   strerror(errno));

		close(fd);
		return rc;
	}
	return fd;
}

int local_open(struct daemon *d, struct error *err)
{
	struct error why = {0};
	int fd = local_listen(d->conf->socket, &why);

	if (why.kind)
		return error_set(err, why.kind, why.cause, "%s", why.text);
	if (loop_watch(d, &d->on_client, fd, local_on_client, d)) {
		close(fd);
		return error_set(err, ERROR_LOCAL, errno, "epoll: %s", strerror(errno));
	}
	return 0;
}

void local_close(struct daemon *d)
{
	int fd = d->on_client.fd;

	while (d->clients)
		local_close_client(d->clients);
	loop_unwatch(d, &d->on_client);
	if (fd < 0)
		return;
	unlink(d->conf->socket);
	close(fd);
}

void local_drop(struct client *client)
{
	/*
	 * Only mark the client: nothing may free the client before the loop has seen the mark.
	 */
	client->is_dead = true;
	shutdown(client->on_packet.fd, SHUT_RDWR);
}

static void local_send_bytes(struct client *client, const void *bytes, size_t len, const int *fds,
			     unsigned fd_count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(PACKET_FILES * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd_count) {
		struct cmsghdr *cmsg = &control.align;

		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, fd_count * sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	}
	if (sendmsg(client->on_packet.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len)
		return;
	local_drop(client); /* the client does not read, or is gone */
}

/*
 * Returns true if the client supports the format of the record in the packet. The format rises
 * only when the processes that map the set support it. A process that started in the same moment
 * gets this refusal when it resumes.
 */
static bool local_understands(const struct client *client, const struct packet *p)
{
	uint32_t format = 0;

	if (p->type == PACKET_MAPPED)
		format = p->mapped.record.config.format;
	else if (p->type == PACKET_RECORD || p->type == PACKET_CHANGED)
		format = p->record.record.config.format;
	else if (p->type == PACKET_SWAPPED)
		format = p->swapped.record.config.format;
	return format <= client->version;
}

void local_send(struct client *client, struct packet *p, const int *fds, unsigned fd_count)
{
	static uint8_t out[PACKET_MAX];
	unsigned version = client->version ? client->version : version_newest();

	if (!local_understands(client, p)) {
		local_drop(client);
		return;
	}
	killpoint(KILLPOINT_packet_before);
	local_send_bytes(client, out, packet_encode(p, version, out), fds, fd_count);
}

void local_send_text(struct client *client, const char *text, size_t len)
{
	local_send_bytes(client, text, len, NULL, 0);
}

void local_send_done(struct client *client, uint32_t id, enum packet_status status,
		     const char *text)
{
	static struct packet p; /* static, because it is large */

	packet_begin(&p, PACKET_DONE, id);
	p.done.status = (uint8_t)status;
	snprintf(p.done.text, sizeof(p.done.text), "%s", text);
	local_send(client, &p, NULL, 0);
}
