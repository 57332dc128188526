/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scale_target.c -- the target: accepts all connections, and deletes those that the initiator
 * closes.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scale_impl.h"

static struct {
	struct scale_side side;
	struct rpma_ep *ep;
	uint8_t desc[64];
	size_t desc_len;
	int epfd, in, out;
} target;

static void target_watch(int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
	    epoll_ctl(target.epfd, EPOLL_CTL_ADD, fd, &ev))
		scale_die("epoll_ctl");
}

static void target_accept(void)
{
	struct rpma_conn_private_data pd = {.ptr = target.desc, .len = (uint8_t)target.desc_len};
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	int fd;

	while (!rpma_ep_next_conn_req(target.ep, target.side.shared, &req)) {
		if (rpma_conn_req_connect(&req, &pd, &conn))
			continue;
		scale_must(rpma_conn_get_event_fd(conn, &fd), "descriptor");
		target_watch(fd, conn);
	}
}

static void target_on_event(struct rpma_conn *conn)
{
	enum rpma_conn_event ev;

	while (!rpma_conn_next_event(conn, &ev)) {
		if (ev == RPMA_CONN_ESTABLISHED)
			continue;
		rpma_conn_disconnect(conn);
		rpma_conn_delete(&conn);
		return;
	}
}

/* Answer each received byte with the resources used so far. Returns false if the initiator is
 * gone. */
static bool target_answer(void)
{
	struct scale_usage u = scale_usage();
	char c;

	if (read(target.in, &c, 1) != 1)
		return false;
	return write(target.out, &u, sizeof(u)) == sizeof(u);
}

static void target_serve(void)
{
	struct epoll_event ev[64];

	for (;;) {
		int n = epoll_wait(target.epfd, ev, 64, -1);

		for (int i = 0; i < n; i++) {
			if (ev[i].data.ptr == &target.ep)
				target_accept();
			else if (ev[i].data.ptr != &target.in)
				target_on_event(ev[i].data.ptr);
			else if (!target_answer())
				return;
		}
	}
}

static void target_run(void)
{
	uint16_t port;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	scale_side_open(&target.side, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
					      RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	scale_must(rpma_mr_get_descriptor_size(target.side.mr, &target.desc_len), "descriptor");
	scale_must(rpma_mr_get_descriptor(target.side.mr, target.desc), "descriptor");
	scale_must(rpma_ep_listen(target.side.peer, "127.0.0.1", "0", &target.ep), "listen");
	scale_must(rpma_ep_get_port(target.ep, &port), "port");
	target.epfd = epoll_create1(EPOLL_CLOEXEC);
	scale_must(rpma_ep_get_fd(target.ep, &fd), "descriptor");
	target_watch(fd, &target.ep);
	target_watch(target.in, &target.in);
	if (write(target.out, &port, sizeof(port)) != sizeof(port))
		scale_die("write");
	target_serve();
	_exit(0);
}

void scale_target_start(struct scale_target *t)
{
	int to[2], from[2];
	uint16_t port;
	pid_t pid;

	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC) || (pid = fork()) < 0)
		scale_die("start a process");
	if (pid == 0) {
		close(to[1]);
		close(from[0]);
		target.in = to[0];
		target.out = from[1];
		target_run();
	}
	close(to[0]);
	close(from[1]);
	t->to = to[1];
	t->from = from[0];
	if (read(t->from, &port, sizeof(port)) != sizeof(port))
		scale_die("no target");
	snprintf(t->port, sizeof(t->port), "%u", port);
}

struct scale_usage scale_target_usage(struct scale_target *t)
{
	struct scale_usage u;

	if (write(t->to, "?", 1) != 1 || read(t->from, &u, sizeof(u)) != sizeof(u))
		scale_die("the target is gone");
	return u;
}

void scale_target_stop(struct scale_target *t)
{
	close(t->to);
	close(t->from);
	wait(NULL);
}
