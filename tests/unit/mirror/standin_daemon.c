/* SPDX-License-Identifier: BSD-3-Clause */
/* This host's daemon, with a register in memory. */
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "standin_impl.h"

static void standin_send(struct standin *s, struct packet *p, const int *files)
{
	union {
		char buf[CMSG_SPACE(PACKET_FILES * sizeof(int))];
		struct cmsghdr align;
	} control = {.align = {.cmsg_len = CMSG_LEN(PACKET_FILES * sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS}};
	struct iovec iov = {s->buf, packet_encode(p, version_newest(), s->buf)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (files) {
		memcpy(CMSG_DATA(&control.align), files, PACKET_FILES * sizeof(int));
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
	}
	sendmsg(s->client, &msg, MSG_NOSIGNAL);
}

static void standin_on_map(struct standin *s, struct packet *a)
{
	int files[PACKET_FILES] = {s->members[0].fd, s->meta_fd, s->members[0].fd};

	a->type = PACKET_MAPPED;
	a->mapped.uuid = s->record.config.uuid;
	a->mapped.copy_id = s->record.config.members[0].id;
	a->mapped.size = STANDIN_SIZE;
	a->mapped.revision = s->revision;
	a->mapped.record = s->record;
	standin_send(s, a, files);
}

static void standin_on_swap(struct standin *s, const struct packet_swap_request *swap,
			    struct packet *a)
{
	a->type = PACKET_SWAPPED;
	if (!s->register_works) {
		a->swapped.result = PACKET_SWAP_FAILED;
	} else if (swap->revision != s->revision) {
		a->swapped.result = PACKET_SWAP_CHANGED;
	} else {
		s->record = swap->after;
		s->revision++;
		a->swapped.result = PACKET_SWAP_DONE;
	}
	a->swapped.revision = s->revision;
	a->swapped.record = s->record;
	standin_send(s, a, NULL);
}

static void standin_on_heartbeat(struct standin *s, struct packet *a)
{
	if (!s->lease_renewed)
		return;
	a->type = PACKET_LEASE;
	a->id = 0;
	a->lease.sent_ns = clock_boot_ns();
	a->lease.confirmed_ns = a->lease.sent_ns;
	standin_send(s, a, NULL);
}

static void standin_on_packet(struct standin *s, const struct packet *p)
{
	struct packet *a = &s->answer;

	if (s->silent && (p->type == PACKET_SWAP || p->type == PACKET_GET_RECORD))
		return;
	memset(a, 0, sizeof(*a));
	a->id = p->id;
	switch (p->type) {
	case PACKET_MAP:
		standin_on_map(s, a);
		break;
	case PACKET_SWAP:
		standin_on_swap(s, &p->swap, a);
		break;
	case PACKET_GET_RECORD:
		a->type = PACKET_RECORD;
		a->record.status = s->register_works ? PACKET_OK : PACKET_REGISTER;
		a->record.revision = s->revision;
		a->record.record = s->record;
		standin_send(s, a, NULL);
		break;
	case PACKET_MEMBER:
		a->type = PACKET_MEMBER;
		standin_answer(s, 0, &p->member, &a->member);
		standin_send(s, a, NULL);
		break;
	case PACKET_HEARTBEAT:
		standin_on_heartbeat(s, a);
		break;
	case PACKET_UNMAP:
		s->unmapped = true;
		s->unmapped_clean = p->unmap.clean;
		/* fall through */
	case PACKET_SERVE:
	case PACKET_FAIL:
	case PACKET_LOST:
		a->type = PACKET_DONE;
		standin_send(s, a, NULL);
		break;
	case PACKET_ORDERED:
		s->ordered = p->ordered;
		s->has_ordered = true;
		break;
	case PACKET_STATUS:
		s->status = p->report.status;
		break;
	default:
		break;
	}
}

void standin_send_order(struct standin *s, const struct packet_order_request *order)
{
	struct packet *a = &s->answer;

	memset(a, 0, sizeof(*a));
	a->type = PACKET_ORDER;
	a->id = 1;
	a->order = *order;
	s->has_ordered = false;
	standin_send(s, a, NULL);
}

void standin_step_daemon(struct standin *s)
{
	ssize_t n;

	if (s->client < 0 && s->listener >= 0)
		s->client = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (s->client >= 0 && (n = recv(s->client, s->buf, PACKET_MAX, MSG_DONTWAIT)) >= 0) {
		if (n && !packet_decode(s->buf, (size_t)n, &s->packet)) {
			standin_on_packet(s, &s->packet);
			continue;
		}
		close(s->client);
		s->client = -1;
	}
}
