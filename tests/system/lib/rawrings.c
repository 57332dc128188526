/* SPDX-License-Identifier: BSD-3-Clause */
#include "rawrings.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cursor.h"

#define VERSION    1
#define PACKET_LEN 48
#define PAGE       4096

enum { PACKET_NONCE = 1, PACKET_MEMORY = 2 };

_Static_assert(sizeof(struct rawring_head) == 128 && offsetof(struct rawring_head, head) == 64,
	       "as doc/wire.md has it");

static const uint8_t own_nonce[EXT_LINK_TOKEN] = {1, 2, 3, 4};

/* --- the move to rings ---------------------------------------------------------------------- */

static int rawrings_step(struct raw *r, enum ext_link_step step, const uint8_t *token)
{
	struct ext_link msg = {.word = {EXT_LINK, step}};
	uint8_t bytes[EXT_LINK_LEN];

	if (token)
		memcpy(msg.token, token, sizeof(msg.token));
	ext_link_encode(bytes, sizeof(bytes), &msg);
	return raw_control(r, RDMAP_EXT_REQ, bytes, sizeof(bytes));
}

/* Take the next message with this step, and drop other control messages. */
static int rawrings_expect_step(struct raw *r, enum ext_link_step step, struct ext_link *msg)
{
	const uint8_t *payload;
	struct ddp_hdr hdr;
	int len;

	do {
		len = raw_expect(r, RDMAP_EXT_REQ, &hdr, &payload);
		if (len < 0)
			return len;
	} while (len < EXT_LINK_LEN || ext_word_of(payload).kind != EXT_LINK);
	ext_link_decode(payload, (size_t)len, msg);
	return msg->word.arg == step ? 0 : -EPROTO;
}

static int rawrings_dial(const uint8_t name[EXT_LINK_TOKEN])
{
	struct timeval limit = {.tv_sec = RAW_WAIT_MS / 1000};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	char *at = un.sun_path + 1;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at += sprintf(at, "softrnic-");
	for (int i = 0; i < EXT_LINK_TOKEN; i++)
		at += sprintf(at, "%02x", name[i]);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (fd >= 0 && !connect(fd, (struct sockaddr *)&un, (socklen_t)(at - (char *)&un)))
		return fd;
	close(fd);
	return -ECONNREFUSED;
}

static int rawrings_send_nonce(int fd)
{
	uint8_t bytes[PACKET_LEN] = {0};
	struct wcursor c = wcursor_init(bytes, sizeof(bytes));

	wcursor_bytes(&c, "softring", 8);
	wcursor_be32(&c, PACKET_NONCE);
	wcursor_be64(&c, 0);
	wcursor_bytes(&c, own_nonce, sizeof(own_nonce));
	return send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == PACKET_LEN ? 0 : -EPIPE;
}

/* *passed gets the descriptor in the packet, or -1. */
static int rawrings_recv_packet(int fd, uint32_t kind, uint64_t *size, uint8_t *nonce, int *passed)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	uint8_t bytes[PACKET_LEN];
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control)};
	struct rcursor c = rcursor_init(bytes, sizeof(bytes));

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != PACKET_LEN)
		return -EPROTO;
	if (CMSG_FIRSTHDR(&msg))
		memcpy(passed, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*passed));
	if (memcmp(rcursor_bytes(&c, 8), "softring", 8) || rcursor_be32(&c) != kind)
		return -EPROTO;
	*size = rcursor_be64(&c);
	memcpy(nonce, rcursor_bytes(&c, EXT_LINK_TOKEN), EXT_LINK_TOKEN);
	return 0;
}

static int rawrings_map(struct rawrings *s)
{
	s->len = PAGE + 2 * s->size;
	s->base = mmap(NULL, s->len, PROT_READ | PROT_WRITE, MAP_SHARED, s->memory, 0);
	if (s->base == MAP_FAILED)
		return -errno;
	for (int i = 0; i < 2; i++) {
		s->ring[i] = (struct rawring_head *)s->base + i;
		s->bytes[i] = s->base + PAGE + (size_t)i * s->size;
	}
	return 0;
}

static int rawrings_meet(struct raw *r, struct rawrings *s)
{
	uint8_t nonce[EXT_LINK_TOKEN], none[EXT_LINK_TOKEN];
	struct ext_link msg;
	uint64_t size;
	int ret = rawrings_expect_step(r, EXT_LINK_MEET, &msg);

	if (ret)
		return ret;
	s->fd = rawrings_dial(msg.token);
	if (s->fd < 0)
		return s->fd;
	ret = rawrings_send_nonce(s->fd);
	if (!ret)
		ret = rawrings_recv_packet(s->fd, PACKET_NONCE, &size, nonce, &s->memory);
	if (!ret)
		ret = rawrings_expect_step(r, EXT_LINK_MET, &msg);
	if (!ret)
		ret = rawrings_step(r, EXT_LINK_PROOF, nonce);
	if (!ret)
		ret = rawrings_recv_packet(s->fd, PACKET_MEMORY, &s->size, none, &s->memory);
	return ret ? ret : rawrings_map(s);
}

int rawrings_connect(struct raw *r, struct rawrings *rings, const char *port)
{
	struct ext_link msg;
	int ret = raw_connect_mute(r, port, RAW_EXTENSIONS);

	*rings = (struct rawrings){.fd = -1, .memory = -1, .base = MAP_FAILED};
	if (!ret)
		ret = raw_hello_with(r, VERSION);
	if (!ret)
		ret = rawrings_meet(r, rings);
	if (!ret)
		ret = rawrings_step(r, EXT_LINK_SWITCH, NULL);
	if (!ret)
		ret = rawrings_expect_step(r, EXT_LINK_SWITCH, &msg);
	r->rings = rings;
	return ret;
}

void rawrings_close(struct raw *r)
{
	struct rawrings *s = r->rings;

	r->rings = NULL;
	raw_close(r);
	if (s->base != MAP_FAILED)
		munmap(s->base, s->len);
	if (s->fd >= 0)
		close(s->fd);
	if (s->memory >= 0)
		close(s->memory);
}

/* --- bytes ---------------------------------------------------------------------------------- */

void rawrings_wake(struct raw *r)
{
	send(r->rings->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool rawrings_has_ended(const struct raw *r)
{
	struct pollfd p = {.fd = r->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

int rawrings_send(struct raw *r, const void *bytes, size_t len)
{
	struct rawrings *s = r->rings;
	const uint8_t *from = bytes;

	while (len > 0) {
		if (s->written - atomic_load(&s->ring[0]->head) >= s->size) {
			if (rawrings_has_ended(r))
				return -ESHUTDOWN;
			usleep(100);
			continue;
		}
		s->bytes[0][s->written++ % s->size] = *from++;
		if (--len == 0 || s->written % 1024 == 0) {
			atomic_store(&s->ring[0]->tail, s->written);
			rawrings_wake(r);
		}
	}
	return 0;
}

/* The bytes in the ring are received before the end of the connection. */
int rawrings_recv(struct raw *r, void *bytes, size_t len, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MS, there;
	struct rawrings *s = r->rings;
	bool ended;

	for (;;) {
		ended = rawrings_has_ended(r);
		there = atomic_load(&s->ring[1]->tail) - s->read;
		if (there > 0 && there <= s->size)
			break;
		if (ended)
			return 0;
		if (clock_now_ns() >= end)
			return -ETIMEDOUT;
		usleep(100);
	}
	there = there < len ? there : len;
	for (uint64_t i = 0; i < there; i++)
		((uint8_t *)bytes)[i] = s->bytes[1][s->read++ % s->size];
	atomic_store(&s->ring[1]->head, s->read);
	return (int)there;
}

/* The word "given up" is in the initiator's cache line, after the positions of both rings. */
void rawrings_give_up(struct raw *r)
{
	_Atomic uint32_t *word =
		(_Atomic uint32_t *)(r->rings->base + 2 * sizeof(struct rawring_head));

	atomic_store(word, 1);
}
