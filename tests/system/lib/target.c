/* SPDX-License-Identifier: BSD-3-Clause */
#include "target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define ADDR       "127.0.0.1"
#define SLOTS      2048
#define PORT_TRIES 20

struct target_conn {
	struct target_watch on_event, on_completion;
	struct list link;
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	unsigned slot;
};

static void target_free_port(char port[8])
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&sin, len) || getsockname(fd, (void *)&sin, &len))
		sin.sin_port = 0;
	snprintf(port, 8, "%u", (unsigned)ntohs(sin.sin_port));
	close(fd);
}

int target_watch(struct target *t, int fd, struct target_watch *w)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};
	int flags = fcntl(fd, F_GETFL);

	w->target = t;
	if (fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	return epoll_ctl(t->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void target_conn_end(struct target_conn *c)
{
	struct target *t = c->on_event.target;
	int fd;

	if (!rpma_conn_get_event_fd(c->conn, &fd))
		epoll_ctl(t->epfd, EPOLL_CTL_DEL, fd, NULL);
	if (!rpma_cq_get_fd(c->cq, &fd))
		epoll_ctl(t->epfd, EPOLL_CTL_DEL, fd, NULL);
	rpma_conn_disconnect(c->conn);
	rpma_conn_delete(&c->conn);
	list_del(&c->link);
	t->slot_taken[c->slot] = 0;
	t->n_conns--;
	free(c);
}

static void target_conn_on_event(struct target_watch *w)
{
	struct target_conn *c = container_of(w, struct target_conn, on_event);
	enum rpma_conn_event event;

	if (rpma_conn_next_event(c->conn, &event) || event == RPMA_CONN_ESTABLISHED)
		return;
	c->on_event.target->n_lost += event != RPMA_CONN_CLOSED;
	target_conn_end(c);
}

static size_t target_slot_of(const struct target_conn *c)
{
	return (size_t)c->slot * TARGET_MSG_SIZE;
}

/* Handle one message at a time: receive it, send it back, and only then post the next receive. */
static void target_conn_on_wc(struct target_conn *c, const struct ibv_wc *wc)
{
	struct target *t = c->on_event.target;

	if (wc->status != IBV_WC_SUCCESS)
		return;
	if (wc->opcode == IBV_WC_RECV)
		rpma_send(c->conn, t->msgs_mr, target_slot_of(c), wc->byte_len,
			  RPMA_F_COMPLETION_ALWAYS, NULL);
	else
		rpma_recv(c->conn, t->msgs_mr, target_slot_of(c), TARGET_MSG_SIZE, NULL);
}

static void target_conn_on_completion(struct target_watch *w)
{
	struct target_conn *c = container_of(w, struct target_conn, on_completion);
	struct ibv_wc wc;

	rpma_cq_wait(c->cq);
	while (!rpma_cq_get_wc(c->cq, 1, &wc, NULL))
		target_conn_on_wc(c, &wc);
}

static uint8_t target_descriptors(const struct target *t, uint8_t *desc)
{
	uint8_t len = 0;

	for (int i = 0; i < t->n_regions; i++, len = (uint8_t)(len + TARGET_DESC_SIZE))
		memcpy(desc + len, t->region[i].desc, TARGET_DESC_SIZE);
	return len;
}

static int target_conn_watch(struct target *t, struct target_conn *c)
{
	int event_fd, cq_fd, ret = rpma_conn_get_event_fd(c->conn, &event_fd);

	if (!ret)
		ret = rpma_conn_get_cq(c->conn, &c->cq);
	if (!ret)
		ret = rpma_cq_get_fd(c->cq, &cq_fd);
	if (!ret)
		ret = target_watch(t, event_fd, &c->on_event);
	if (!ret)
		ret = target_watch(t, cq_fd, &c->on_completion);
	return ret;
}

static struct target_conn *target_conn_new(struct target *t)
{
	struct target_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	while (c->slot < SLOTS && t->slot_taken[c->slot])
		c->slot++;
	if (c->slot == SLOTS) {
		free(c);
		return NULL;
	}
	list_init(&c->link);
	c->on_event.ready = target_conn_on_event;
	c->on_completion.ready = target_conn_on_completion;
	return c;
}

static void target_accept_request(struct target *t, struct rpma_conn_req *req)
{
	uint8_t desc[TARGET_REGIONS_MAX * TARGET_DESC_SIZE];
	struct rpma_conn_private_data pdata = {.ptr = desc, .len = target_descriptors(t, desc)};
	struct target_conn *c = target_conn_new(t);

	if (!c || rpma_conn_req_recv(req, t->msgs_mr, target_slot_of(c), TARGET_MSG_SIZE, NULL)) {
		rpma_conn_req_delete(&req);
		free(c);
		return;
	}
	if (rpma_conn_req_connect(&req, pdata.len ? &pdata : NULL, &c->conn)) {
		free(c);
		return;
	}
	t->slot_taken[c->slot] = 1;
	list_add_tail(&t->conns, &c->link);
	t->n_conns++;
	t->n_accepted++;
	if (target_conn_watch(t, c)) {
		perror("watching a connection");
		target_conn_end(c);
	}
}

static void target_on_request(struct target_watch *w)
{
	struct rpma_conn_req *req;

	if (!rpma_ep_next_conn_req(w->target->ep, NULL, &req))
		target_accept_request(w->target, req);
}

void target_step(struct target *t, int timeout_ms)
{
	struct epoll_event ev;

	/*
	 * Take one event at a time, because its handler can delete the connection of another event.
	 */
	if (epoll_wait(t->epfd, &ev, 1, timeout_ms) == 1) {
		struct target_watch *w = ev.data.ptr;

		w->ready(w);
	}
}

static int target_region_reg(struct target_region *r, struct rpma_peer *peer, void *ptr,
			     size_t size, int usage)
{
	int ret = rpma_mr_reg(peer, ptr, size, usage, &r->mr);

	return ret ? ret : rpma_mr_get_descriptor(r->mr, r->desc);
}

int target_add(struct target *t, void *ptr, size_t size, int usage, bool strange)
{
	struct target_region *r = &t->region[t->n_regions];
	int ret;

	if (t->n_regions == TARGET_REGIONS_MAX)
		return RPMA_E_INVAL;
	ret = target_region_reg(r, strange ? t->stranger : t->peer, ptr, size, usage);
	if (ret)
		return ret;
	r->ptr = ptr;
	r->size = size;
	t->n_regions++;
	return 0;
}

int target_replace(struct target *t, int i, void *ptr, size_t size, int usage)
{
	return target_region_reg(&t->region[i], t->peer, ptr, size, usage);
}

int target_add_anon(struct target *t, size_t size, int usage, bool strange)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? RPMA_E_NOMEM : target_add(t, p, size, usage, strange);
}

int target_add_file(struct target *t, const char *path, size_t size, int usage)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p;

	if (fd < 0)
		return RPMA_E_INVAL;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return p == MAP_FAILED ? RPMA_E_NOMEM : target_add(t, p, size, usage, false);
}

int target_dereg(struct target *t, int i)
{
	return rpma_mr_dereg(&t->region[i].mr);
}

static int target_listen(struct target *t)
{
	int fd, ret = RPMA_E_PROVIDER;

	/* Another process can take the chosen port before this process listens. If so, choose
	 * another port. */
	for (int i = 0; ret && i < PORT_TRIES; i++) {
		target_free_port(t->port);
		ret = rpma_ep_listen(t->peer, ADDR, t->port, &t->ep);
	}
	if (!ret)
		ret = rpma_ep_get_fd(t->ep, &fd);
	t->on_request.ready = target_on_request;
	return ret ? ret : target_watch(t, fd, &t->on_request);
}

int target_open(struct target *t)
{
	size_t size = (size_t)SLOTS * TARGET_MSG_SIZE;
	struct ibv_context *ctx;
	int ret;

	memset(t, 0, sizeof(*t));
	list_init(&t->conns);
	t->epfd = epoll_create1(EPOLL_CLOEXEC);
	t->slot_taken = calloc(1, SLOTS);
	t->msgs = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->epfd < 0 || !t->slot_taken || t->msgs == MAP_FAILED)
		return RPMA_E_NOMEM;
	ret = rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx);
	if (!ret)
		ret = rpma_peer_new(ctx, &t->peer);
	if (!ret)
		ret = rpma_peer_new(ctx, &t->stranger);
	if (!ret)
		ret = rpma_mr_reg(t->peer, t->msgs, size, RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV,
				  &t->msgs_mr);
	return ret ? ret : target_listen(t);
}

void target_close(struct target *t)
{
	struct list *it, *tmp;

	list_for_each_safe (it, tmp, &t->conns)
		target_conn_end(container_of(it, struct target_conn, link));
	for (int i = 0; i < t->n_regions; i++) {
		rpma_mr_dereg(&t->region[i].mr);
		if (t->region[i].ptr)
			munmap(t->region[i].ptr, t->region[i].size);
	}
	rpma_mr_dereg(&t->msgs_mr);
	munmap(t->msgs, (size_t)SLOTS * TARGET_MSG_SIZE);
	rpma_ep_shutdown(&t->ep);
	rpma_peer_delete(&t->stranger);
	rpma_peer_delete(&t->peer);
	free(t->slot_taken);
	close(t->epfd);
}
