/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/daemon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/poll.h"
#include "librpmirror.h"
#include "mirror/errmsg.h"

#define DAEMON_SOCKET "/run/rpmirror/rpmirrord.socket"

struct daemon_unsent {
	struct list node;
	size_t len;
	uint8_t bytes[];
};

static int daemon_connect(struct daemon *d, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(addr.sun_path))
		return errmsg_fail(RPMIRROR_E_DAEMON,
				   "the path of rpmirrord's socket is too long: %s", path);
	strcpy(addr.sun_path, path);
	d->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return errmsg_fail(RPMIRROR_E_PROVIDER, "cannot make a socket: %s",
				   strerror(errno));
	d->own = ownfd_of(d->fd);
	if (!connect(d->fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return 0;
	d->is_absent = errno == ENOENT || errno == ECONNREFUSED || errno == EAGAIN;
	return errmsg_fail(RPMIRROR_E_DAEMON,
			   "cannot reach rpmirrord at %s: %s; start it, or name its socket "
			   "in RPMIRROR_SOCKET",
			   path, strerror(errno));
}

int daemon_open(struct daemon *d)
{
	const char *path = getenv("RPMIRROR_SOCKET");
	int rc;

	*d = (struct daemon){.fd = -1, .own.fd = -1, .files = {-1, -1, -1}};
	list_init(&d->unsent);
	d->buf = malloc(PACKET_MAX);
	d->packet = malloc(sizeof(*d->packet));
	if (d->buf && d->packet)
		rc = daemon_connect(d, path && *path ? path : DAEMON_SOCKET);
	else
		rc = errmsg_fail(RPMIRROR_E_NOMEM, "out of memory");
	if (rc)
		daemon_close(d);
	return rc;
}

static void daemon_close_files(struct daemon *d)
{
	for (int i = 0; i < PACKET_FILES; i++) {
		if (d->files[i] >= 0)
			close(d->files[i]);
		d->files[i] = -1;
	}
}

void daemon_close(struct daemon *d)
{
	if (!d->buf)
		return;
	/* If the application has closed the socket, it has closed these descriptors, too. */
	if (d->fd >= 0 && !ownfd_is_lost(&d->own)) {
		close(d->fd);
		daemon_close_files(d);
	}
	d->fd = -1;
	while (!list_empty(&d->unsent)) {
		struct daemon_unsent *u =
			container_of(list_first(&d->unsent), struct daemon_unsent, node);

		list_del(&u->node);
		free(u);
	}
	free(d->buf);
	free(d->packet);
	d->buf = NULL;
	d->packet = NULL;
}

/* Returns 1: sent; 0: the socket is full; -1: the connection is closed. */
static int daemon_write(struct daemon *d, const void *bytes, size_t len)
{
	ssize_t n;

	if (ownfd_is_lost(&d->own))
		return -1;
	do {
		n = send(d->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 1;
	return errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
}

static bool daemon_keep(struct daemon *d, size_t len)
{
	struct daemon_unsent *u = malloc(sizeof(*u) + len);

	if (!u)
		return false;
	u->len = len;
	memcpy(u->bytes, d->buf, len);
	list_add_tail(&d->unsent, &u->node);
	return true;
}

/* Returns the version in which to send a packet: the newest for MAP, and the lowest for all other
 * packets until the daemon's version is known. */
static unsigned daemon_version(const struct daemon *d, const struct packet *p)
{
	if (p->type == PACKET_MAP)
		return version_newest();
	return d->version ? d->version : version_ours().lowest;
}

bool daemon_send(struct daemon *d, struct packet *p)
{
	size_t len;
	int sent = 0;

	if (d->fd < 0)
		return false;
	if (!p->id)
		p->id = ++d->last_id;
	len = packet_encode(p, daemon_version(d, p), d->buf);
	if (list_empty(&d->unsent))
		sent = daemon_write(d, d->buf, len);
	return sent > 0 || (!sent && daemon_keep(d, len));
}

bool daemon_has_unsent(const struct daemon *d)
{
	return !list_empty(&d->unsent);
}

bool daemon_send_unsent(struct daemon *d)
{
	while (!list_empty(&d->unsent)) {
		struct daemon_unsent *u =
			container_of(list_first(&d->unsent), struct daemon_unsent, node);
		int sent = daemon_write(d, u->bytes, u->len);

		if (sent <= 0)
			return !sent;
		list_del(&u->node);
		free(u);
	}
	return true;
}

static void daemon_take_files(struct daemon *d, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(d->files, CMSG_DATA(c),
			       (n < PACKET_FILES ? n : PACKET_FILES) * sizeof(int));
	}
}

enum daemon_got daemon_receive(struct daemon *d)
{
	union {
		char buf[CMSG_LEN(PACKET_FILES * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {d->buf, PACKET_MAX};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	ssize_t n;

	if (d->fd < 0 || ownfd_is_lost(&d->own))
		return DAEMON_GOT_END;
	do {
		n = recvmsg(d->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? DAEMON_GOT_NONE : DAEMON_GOT_END;
	daemon_close_files(d);
	daemon_take_files(d, &msg);
	d->lacks_files = msg.msg_flags & MSG_CTRUNC;
	if (!n || msg.msg_flags & MSG_TRUNC || packet_decode(d->buf, (size_t)n, d->packet))
		return DAEMON_GOT_END;
	if (d->packet->type == PACKET_MAPPED)
		d->version = d->packet->versions.newest;
	return DAEMON_GOT_PACKET;
}

enum daemon_got daemon_wait(struct daemon *d, int timeout_ms)
{
	uint64_t deadline = poll_deadline(timeout_ms);
	struct pollfd pfd = {.fd = d->fd, .events = POLLIN};

	for (;;) {
		enum daemon_got got = daemon_receive(d);
		int ms = poll_ms_left(deadline);

		if (got != DAEMON_GOT_NONE || !ms)
			return got;
		poll(&pfd, 1, ms);
	}
}
