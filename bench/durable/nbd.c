/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd -- measures NBD_CMD_WRITE with FUA to an NBD server, by libnbd. See ../README.md. */
#include <libnbd.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "lib/die.h"
#include "load.h"

struct nbd_slot {
	struct load_conn *lc;
	unsigned slot;
};

struct nbd {
	struct nbd_handle *h;
	struct nbd_slot slots[1024]; /* enough for the largest `depth` */
};

static void nbd_must(int ret, const char *what)
{
	if (ret < 0)
		die("%s: %s", what, nbd_get_error());
}

static void nbd_open(struct load_conn *lc)
{
	struct nbd *n = lc->own;
	char port[8];

	n->h = nbd_create();
	if (!n->h)
		die("libnbd: %s", nbd_get_error());
	snprintf(port, sizeof(port), "%u", lc->load->port);
	nbd_must(nbd_connect_tcp(n->h, lc->load->c->addr, port), "connect");
	if (nbd_can_fua(n->h) != 1)
		die("the server does not offer FUA");
	lc->fd = nbd_aio_get_fd(n->h);
}

static int nbd_completed(void *arg, int *error)
{
	struct nbd_slot *s = arg;

	if (*error)
		die("a write failed: %s", strerror(*error));
	load_done(s->lc, s->slot);
	return 1; /* 1: libnbd may free the command */
}

static void nbd_post(struct load_conn *lc, unsigned slot, uint64_t at)
{
	struct nbd *n = lc->own;
	nbd_completion_callback done = {.callback = nbd_completed, .user_data = &n->slots[slot]};

	n->slots[slot] = (struct nbd_slot){lc, slot};
	if (nbd_aio_pwrite(n->h, lc->load->payload, load_size(lc->load), at, done,
			   LIBNBD_CMD_FLAG_FUA) < 0)
		die("write: %s", nbd_get_error());
}

static bool nbd_waits_to_write(const struct load_conn *lc)
{
	const struct nbd *n = lc->own;

	return nbd_aio_get_direction(n->h) & LIBNBD_AIO_DIRECTION_WRITE;
}

static void nbd_service(struct load_conn *lc, unsigned events)
{
	struct nbd *n = lc->own;

	/* Query the direction again, because each call may change it. */
	if (events & EPOLLIN && nbd_aio_get_direction(n->h) & LIBNBD_AIO_DIRECTION_READ)
		nbd_must(nbd_aio_notify_read(n->h), "read");
	else if (events & EPOLLOUT && nbd_waits_to_write(lc))
		nbd_must(nbd_aio_notify_write(n->h), "write");
}

static unsigned nbd_wants(const struct load_conn *lc)
{
	return EPOLLIN | (nbd_waits_to_write(lc) ? EPOLLOUT : 0);
}

static void nbd_end(struct load_conn *lc)
{
	struct nbd *n = lc->own;

	nbd_shutdown(n->h, 0);
	nbd_close(n->h);
}

int main(int argc, char **argv)
{
	static const struct load_client client = {.who = "nbd",
						  .own = sizeof(struct nbd),
						  .open = nbd_open,
						  .post = nbd_post,
						  .service = nbd_service,
						  .wants = nbd_wants,
						  .close = nbd_end};

	return load_main(&client, argc, argv);
}
