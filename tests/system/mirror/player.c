/* SPDX-License-Identifier: BSD-3-Clause */
#include "player.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/rand.h"
#include "mirror/core/view.h"
#include "system/lib/check.h"

static uint8_t player_buf[PACKET_MAX];

void player_open(struct player *p, const struct hosts *h, unsigned i)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	memset(p, 0, sizeof(*p));
	p->data_fd = p->meta_fd = -1;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%.107s", h->hosts[i].socket);
	p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(p->fd, (struct sockaddr *)&addr, sizeof(addr)))
		fail_msg("cannot connect to %s: %s", addr.sun_path, strerror(errno));
}

void player_close(struct player *p)
{
	close(p->fd);
	if (p->data_fd >= 0)
		close(p->data_fd);
	if (p->meta_fd >= 0)
		close(p->meta_fd);
	p->fd = p->data_fd = p->meta_fd = -1;
}

bool player_answer(struct player *p, struct packet *out)
{
	size_t len = packet_encode(out, version_newest(), player_buf);

	return send(p->fd, player_buf, len, MSG_NOSIGNAL) == (ssize_t)len;
}

bool player_try_send(struct player *p, struct packet *out)
{
	out->id = ++p->next_id;
	return player_answer(p, out);
}

void player_send(struct player *p, struct packet *out)
{
	assert_true(player_try_send(p, out));
}

static void player_take_fds(struct player *p, struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	int fds[2] = {-1, -1};

	if (!cmsg)
		return;
	memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
	p->data_fd = fds[0];
	p->meta_fd = fds[1];
}

struct packet *player_next(struct player *p, int timeout_ms)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct iovec iov = {player_buf, sizeof(player_buf)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
	ssize_t n;

	if (poll(&pfd, 1, timeout_ms) != 1)
		fail_msg("no packet came");
	n = recvmsg(p->fd, &msg, 0);
	if (n <= 0)
		return NULL;
	assert_int_equal(packet_decode(player_buf, (size_t)n, &p->in), 0);
	player_take_fds(p, &msg);
	return &p->in;
}

struct packet *player_expect(struct player *p, enum packet_type type)
{
	struct packet *in;

	do {
		in = player_next(p, PLAYER_WAIT_MS);
		if (!in)
			fail_msg("the daemon has closed the connection instead of %s",
				 packet_type_2str(type));
	} while (in->type != type);
	return in;
}

struct packet *player_ask(struct player *p, struct packet *out, enum packet_type type)
{
	struct packet *in;

	player_send(p, out);
	in = player_expect(p, type);
	assert_int_equal(in->id, out->id);
	return in;
}

enum packet_status player_map(struct player *p, uint8_t flags)
{
	static struct packet out;

	memset(&out, 0, sizeof(out));
	out.type = PACKET_MAP;
	out.map.flags = flags;
	snprintf(out.map.set, sizeof(out.map.set), HOSTS_SET);
	return (enum packet_status)player_ask(p, &out, PACKET_MAPPED)->mapped.status;
}

/* Swap `next` into the register in place of now->record. */
static void player_swap(struct player *p, struct register_entry *now,
			const struct mirror_record *next, bool promotes)
{
	static struct packet out;
	struct packet *in;

	memset(&out, 0, sizeof(out));
	out.type = PACKET_SWAP;
	out.swap.promotes = promotes;
	out.swap.revision = now->revision;
	out.swap.before = now->record;
	out.swap.after = *next;
	in = player_ask(p, &out, PACKET_SWAPPED);
	if (in->swapped.result != PACKET_SWAP_DONE)
		fail_msg("swap: %u, %s", in->swapped.result, in->swapped.text);
	now->revision = in->swapped.revision;
	now->record = in->swapped.record;
}

static uint64_t player_nonce(void)
{
	uint64_t nonce;

	rand_bytes(&nonce, sizeof(nonce));
	return nonce | 1;
}

void player_recover(struct player *p, struct register_entry *now)
{
	static struct mirror_record next;
	static struct packet out;
	uint8_t slot = p->in.mapped.slot;

	now->revision = p->in.mapped.revision;
	now->record = p->in.mapped.record;
	next = now->record;
	assert_int_equal(view_promote(&next, slot, player_nonce(), NULL), 0);
	player_swap(p, now, &next, true);

	memset(&out, 0, sizeof(out));
	out.type = PACKET_MEMBER;
	out.member.type = MESSAGE_PROMISE;
	out.member.uuid = now->record.config.uuid;
	out.member.epoch = now->record.view.epoch;
	assert_int_equal(player_ask(p, &out, PACKET_MEMBER)->member.type, MESSAGE_PROMISED);
}

void player_promote(struct player *p, struct register_entry *now)
{
	static struct mirror_record next;
	static struct packet out;
	uint8_t slot = p->in.mapped.slot;

	player_recover(p, now);
	next = now->record;
	assert_int_equal(view_serve(&next, slot, player_nonce(), NULL), 0);
	player_swap(p, now, &next, false);
	memset(&out, 0, sizeof(out));
	out.type = PACKET_SERVE;
	out.serve.epoch = now->record.view.epoch;
	assert_int_equal(player_ask(p, &out, PACKET_DONE)->done.status, PACKET_OK);
}
