/* SPDX-License-Identifier: BSD-3-Clause */
/* iscsi -- measures WRITE(10) with FUA to an iSCSI target, by libiscsi. See ../README.md. */

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "lib/die.h"
#include "load.h"

#define ISCSI_BLOCK  512
#define ISCSI_TARGET "iqn.2026-11.bench:disk" /* the target's name, which the runner chooses */
#define ISCSI_LUN    1

struct iscsi_slot {
	struct load_conn *lc;
	unsigned slot;
};

struct iscsi {
	struct iscsi_context *ctx;
	struct iscsi_slot slots[1024]; /* enough for the largest `depth` */
};

static void iscsi_open(struct load_conn *lc)
{
	struct iscsi *s = lc->own;
	char name[64], portal[64];

	snprintf(name, sizeof(name), "iqn.2026-11.bench:client%u", lc->number);
	snprintf(portal, sizeof(portal), "%s:%u", lc->load->c->addr, lc->load->port);
	s->ctx = iscsi_create_context(name);
	if (!s->ctx || iscsi_set_targetname(s->ctx, ISCSI_TARGET) ||
	    iscsi_set_session_type(s->ctx, ISCSI_SESSION_NORMAL) ||
	    iscsi_full_connect_sync(s->ctx, portal, ISCSI_LUN))
		die("%s: %s", portal, s->ctx ? iscsi_get_error(s->ctx) : "no memory");
	lc->fd = iscsi_get_fd(s->ctx);
}

static void iscsi_completed(struct iscsi_context *ctx, int status, void *task, void *arg)
{
	struct iscsi_slot *s = arg;

	if (status != SCSI_STATUS_GOOD)
		die("a write failed: %s", iscsi_get_error(ctx));
	scsi_free_scsi_task(task);
	load_done(s->lc, s->slot);
}

static void iscsi_post(struct load_conn *lc, unsigned slot, uint64_t at)
{
	struct iscsi *s = lc->own;
	unsigned char *data = (unsigned char *)lc->load->payload;

	s->slots[slot] = (struct iscsi_slot){lc, slot};
	if (!iscsi_write10_task(s->ctx, ISCSI_LUN, (uint32_t)(at / ISCSI_BLOCK), data,
				(uint32_t)load_size(lc->load), ISCSI_BLOCK, 0, 0, 1, 0, 0,
				iscsi_completed, &s->slots[slot]))
		die("write: %s", iscsi_get_error(s->ctx));
	if (iscsi_service(s->ctx, POLLOUT)) /* this call only queues the request */
		die("send: %s", iscsi_get_error(s->ctx));
}

static void iscsi_on_events(struct load_conn *lc, unsigned events)
{
	struct iscsi *s = lc->own;
	int polled = (events & EPOLLIN ? POLLIN : 0) | (events & EPOLLOUT ? POLLOUT : 0);

	if (iscsi_service(s->ctx, polled))
		die("receive: %s", iscsi_get_error(s->ctx));
}

static unsigned iscsi_wants(const struct load_conn *lc)
{
	const struct iscsi *s = lc->own;
	int polled = iscsi_which_events(s->ctx);

	return (polled & POLLIN ? EPOLLIN : 0) | (polled & POLLOUT ? EPOLLOUT : 0);
}

static void iscsi_close(struct load_conn *lc)
{
	struct iscsi *s = lc->own;

	iscsi_destroy_context(s->ctx);
}

int main(int argc, char **argv)
{
	static const struct load_client client = {.who = "iscsi",
						  .own = sizeof(struct iscsi),
						  .block = ISCSI_BLOCK,
						  .open = iscsi_open,
						  .post = iscsi_post,
						  .service = iscsi_on_events,
						  .wants = iscsi_wants,
						  .close = iscsi_close};

	return load_main(&client, argc, argv);
}
