/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_shm_socket.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/ownfd.h"
#include "softrnic/io/config.h"
#include "softrnic/io/link_shm_close.h"

#define PACKET_MAGIC "softring"
#define PACKET_LEN   48 /* magic, kind, size, nonce; the remaining bytes are 0 */
#define DRAIN_BYTES  4096

/* --- sockets -------------------------------------------------------------------------------- */

static socklen_t socket_name(struct sockaddr_un *un, const uint8_t name[EXT_LINK_TOKEN])
{
	static const char prefix[] = "softrnic-";
	static const char hex[] = "0123456789abcdef";
	/* the name begins after the byte 0 that marks an abstract name */
	char *at = un->sun_path + 1;

	*un = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(at, prefix, sizeof(prefix) - 1);
	at += sizeof(prefix) - 1;
	for (int i = 0; i < EXT_LINK_TOKEN; i++) {
		*at++ = hex[name[i] >> 4];
		*at++ = hex[name[i] & 0xf];
	}
	return (socklen_t)(at - (char *)un);
}

static int socket_new(void)
{
	int fd = ownfd_mark(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));

	return fd < 0 ? -errno : fd;
}

static int socket_finish(int fd, int err)
{
	if (!err)
		return fd;
	close(fd);
	return -err;
}

int shm_socket_listen(const uint8_t name[EXT_LINK_TOKEN], int calls)
{
	struct sockaddr_un un;
	socklen_t len = socket_name(&un, name);
	int fd = socket_new();

	if (fd < 0)
		return fd;
	shm_socket_take_none(fd);
	return socket_finish(fd, bind(fd, (struct sockaddr *)&un, len) || listen(fd, calls) ? errno
											    : 0);
}

int shm_socket_connect(const uint8_t name[EXT_LINK_TOKEN])
{
	struct sockaddr_un un;
	socklen_t len = socket_name(&un, name);
	int fd = socket_new();

	if (fd < 0)
		return fd;
	return socket_finish(fd, connect(fd, (struct sockaddr *)&un, len) ? errno : 0);
}

/* Does the descriptor's number show that enough descriptors are free? The kernel assigns the lowest
 * free number. */
bool shm_socket_is_spare(int fd)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd < limit.rlim_cur / 2;
}

/* Is the user at the other end permitted to share memory? If a user has no number in this name
 * space, the kernel shows the overflow number. This number stands for many users, so it is not
 * permitted. */
bool shm_socket_is_permitted(int fd)
{
	const struct config *conf = config_get();
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || len != sizeof(peer))
		return false;
	if (peer.uid == conf->overflow_uid)
		return false;
	if (peer.uid == geteuid())
		return true;
	for (unsigned i = 0; i < conf->n_shm_uids; i++)
		if (peer.uid == conf->shm_uids[i])
			return true;
	return false;
}

/* --- packets -------------------------------------------------------------------------------- */

struct shm_packet shm_packet_of(enum shm_packet_kind kind, const uint8_t *nonce)
{
	struct shm_packet packet = {.kind = kind};

	if (nonce)
		memcpy(packet.nonce, nonce, sizeof(packet.nonce));
	return packet;
}

static void packet_encode(const struct shm_packet *packet, uint8_t bytes[PACKET_LEN])
{
	struct wcursor c = wcursor_init(bytes, PACKET_LEN);

	memset(bytes, 0, PACKET_LEN);
	wcursor_bytes(&c, PACKET_MAGIC, sizeof(PACKET_MAGIC) - 1);
	wcursor_be32(&c, packet->kind);
	wcursor_be64(&c, packet->ring_size);
	wcursor_bytes(&c, packet->nonce, sizeof(packet->nonce));
}

static int packet_decode(const uint8_t bytes[PACKET_LEN], enum shm_packet_kind kind,
			 struct shm_packet *packet)
{
	struct rcursor c = rcursor_init(bytes, PACKET_LEN);

	if (memcmp(rcursor_bytes(&c, sizeof(PACKET_MAGIC) - 1), PACKET_MAGIC,
		   sizeof(PACKET_MAGIC) - 1))
		return -EPROTO;
	if (rcursor_be32(&c) != (uint32_t)kind)
		return -EPROTO;
	packet->kind = kind;
	packet->ring_size = rcursor_be64(&c);
	memcpy(packet->nonce, rcursor_bytes(&c, sizeof(packet->nonce)), sizeof(packet->nonce));
	return 0;
}

int shm_socket_send(int fd, const struct shm_packet *packet, int pass)
{
	union shm_control control = {.bytes = {0}};
	uint8_t bytes[PACKET_LEN];
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t sent;

	packet_encode(packet, bytes);
	if (pass >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int));
		CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &pass, sizeof(pass));
	}
	sent = sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	return sent == PACKET_LEN ? 0 : -EAGAIN;
}

/* Receive a packet. A descriptor that is not expected counts as an attempt to keep this process
 * busy. */
int shm_socket_recv(int fd, enum shm_packet_kind kind, struct shm_packet *packet, int *passed)
{
	uint8_t bytes[PACKET_LEN];
	struct shm_passed came;
	ssize_t got = shm_socket_receive(fd, bytes, sizeof(bytes), &came);
	int ret;

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -ECONNRESET;
	if (got == 0)
		ret = -ECONNRESET;
	else if (got != PACKET_LEN || came.n != (passed != NULL) || came.truncated)
		ret = -EPROTO;
	else
		ret = packet_decode(bytes, kind, packet);
	if (!ret && passed)
		*passed = came.fds[0];
	else
		shm_close_passed(came.fds, came.n);
	return ret;
}

/* --- wake-ups ------------------------------------------------------------------------------- */

/*
 * If the byte does not fit into the socket's buffer, it is not needed: the bytes in the buffer wake
 * the peer.
 */
void shm_socket_wake(int fd)
{
	const char byte = 0;

	send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Read all wake-ups. Wake-ups pass no descriptors, so a sender that passes one no longer counts as
 * a peer. */
int shm_socket_drain(int fd)
{
	char bytes[DRAIN_BYTES];
	struct shm_passed passed;
	ssize_t got = shm_socket_receive(fd, bytes, sizeof(bytes), &passed);
	int err = errno;

	shm_close_passed(passed.fds, passed.n);
	if (got > 0 && passed.n == 0)
		return 1;
	if (got >= 0)
		return -ECONNRESET;
	return err == EAGAIN || err == EINTR ? 0 : -ECONNRESET;
}
