/* SPDX-License-Identifier: BSD-3-Clause */
/* test_many.c -- fifty connections in one thread, with epoll and O_NONBLOCK: no call blocks. */
#include <sys/epoll.h>
#include <unistd.h>

#include "ends.h"

#define CONNS 50
#define WORD  8

enum what { WHAT_ENDPOINT, WHAT_EVENT, WHAT_COMPLETION };

/* One end of one connection. A client sends a word, the server returns the word, and the client
 * disconnects. */
struct end {
	struct rpma_conn *conn;
	struct rpma_cq *cq;
	bool is_server, established, answered, closed;
	size_t at; /* offset in this side's buffer */
};

/* The data of the epoll events. */
struct watch {
	enum what what;
	struct end *end;
};

struct crowd {
	struct ends d;
	int epfd;
	struct end end[2 * CONNS]; /* clients first, then servers in the order of the requests */
	struct watch watch[4 * CONNS + 1];
	int conns, watches, servers, closed;
};

static void watch_fd(struct crowd *c, int fd, enum what what, struct end *end)
{
	struct watch *w = &c->watch[c->watches++];
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	*w = (struct watch){.what = what, .end = end};
	ends_set_nonblock(fd);
	assert_int_equal(epoll_ctl(c->epfd, EPOLL_CTL_ADD, fd, &ev), 0);
}

static void end_watch(struct crowd *c, struct end *end)
{
	int fd;

	OK(rpma_conn_get_event_fd(end->conn, &fd));
	watch_fd(c, fd, WHAT_EVENT, end);
	OK(rpma_conn_get_cq(end->conn, &end->cq));
	OK(rpma_cq_get_fd(end->cq, &fd));
	watch_fd(c, fd, WHAT_COMPLETION, end);
}

static void end_send(struct crowd *c, struct end *end, size_t at)
{
	OK(rpma_send(end->conn, end->is_server ? c->d.srv_mr : c->d.cli_mr, at, WORD,
		     RPMA_F_COMPLETION_ON_ERROR, NULL));
}

static void client_start(struct crowd *c, int i)
{
	struct end *end = &c->end[i];
	struct rpma_conn_req *req;

	end->at = (size_t)i * WORD;
	OK(rpma_conn_req_new(c->d.peer, ends_addr(), c->d.port, NULL, &req));
	OK(rpma_conn_req_recv(req, c->d.cli_mr, 4096 + end->at, WORD, end));
	OK(rpma_conn_req_connect(&req, NULL, &end->conn));
	end_watch(c, end);
}

static void accept_all(struct crowd *c)
{
	struct rpma_conn_req *req;
	int ret;

	while ((ret = rpma_ep_next_conn_req(c->d.ep, NULL, &req)) == 0) {
		struct end *end = &c->end[c->conns + c->servers];

		end->is_server = true;
		end->at = (size_t)c->servers++ * WORD;
		OK(rpma_conn_req_recv(req, c->d.srv_mr, end->at, WORD, end));
		OK(rpma_conn_req_connect(&req, NULL, &end->conn));
		end_watch(c, end);
	}
	assert_int_equal(ret, RPMA_E_NO_EVENT);
}

static void on_established(struct crowd *c, struct end *end)
{
	end->established = true;
	if (end->is_server)
		return;
	memcpy(c->d.cli_buf + end->at, &end->at, sizeof(end->at));
	end_send(c, end, end->at);
}

static void take_events(struct crowd *c, struct end *end)
{
	enum rpma_conn_event ev;
	int ret;

	while ((ret = rpma_conn_next_event(end->conn, &ev)) == 0) {
		if (ev == RPMA_CONN_ESTABLISHED) {
			on_established(c, end);
			continue;
		}
		assert_int_equal(ev, RPMA_CONN_CLOSED);
		assert_false(end->closed);
		end->closed = true;
		c->closed++;
		if (end->is_server)
			OK(rpma_conn_disconnect(end->conn));
	}
	assert_int_equal(ret, RPMA_E_NO_EVENT);
}

/* A server returns the word that it received; a client compares it and disconnects. */
static void on_message(struct crowd *c, struct end *end)
{
	assert_false(end->answered);
	end->answered = true;
	if (end->is_server) {
		end_send(c, end, end->at);
		return;
	}
	assert_memory_equal(c->d.cli_buf + 4096 + end->at, &end->at, sizeof(end->at));
	OK(rpma_conn_disconnect(end->conn));
}

static void take_completions(struct crowd *c, struct end *end)
{
	struct ibv_wc wc = {0};
	int ret = rpma_cq_wait(end->cq);

	if (ret == RPMA_E_NO_COMPLETION)
		return;
	OK(ret);
	while ((ret = rpma_cq_get_wc(end->cq, 1, &wc, NULL)) == 0) {
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_ptr_equal((void *)(uintptr_t)wc.wr_id, end);
		on_message(c, end);
	}
	assert_int_equal(ret, RPMA_E_NO_COMPLETION);
}

static void crowd_turn(struct crowd *c)
{
	struct epoll_event evs[16];
	int n = epoll_wait(c->epfd, evs, 16, 10000);

	assert_true(n > 0); /* a timeout means that an event was lost */
	for (int i = 0; i < n; i++) {
		const struct watch *w = evs[i].data.ptr;

		if (w->what == WHAT_ENDPOINT)
			accept_all(c);
		else if (w->what == WHAT_EVENT)
			take_events(c, w->end);
		else
			take_completions(c, w->end);
	}
}

static void crowd_open(struct crowd *c)
{
	int fd;

	memset(c, 0, sizeof(*c));
	c->epfd = epoll_create1(EPOLL_CLOEXEC);
	assert_true(c->epfd >= 0);
	c->conns = ends_max_conns(CONNS);
	ends_listen(&c->d, NULL);
	c->d.cli_buf = ends_map(ENDS_BUF);
	c->d.srv_buf = ends_map(ENDS_BUF);
	c->d.cli_mr = ends_reg(&c->d, c->d.cli_buf, ENDS_BUF);
	c->d.srv_mr = ends_reg(&c->d, c->d.srv_buf, ENDS_BUF);
	OK(rpma_ep_get_fd(c->d.ep, &fd));
	watch_fd(c, fd, WHAT_ENDPOINT, NULL);
}

static void fifty_connections_are_served_by_one_thread(void **state)
{
	static struct crowd c;

	crowd_open(&c);
	for (int i = 0; i < c.conns; i++)
		client_start(&c, i);
	while (c.closed < 2 * c.conns)
		crowd_turn(&c);
	for (int i = 0; i < 2 * c.conns; i++) {
		assert_true(c.end[i].established);
		assert_true(c.end[i].answered);
		OK(rpma_conn_delete(&c.end[i].conn));
	}
	close(c.epfd);
	ends_close(&c.d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifty_connections_are_served_by_one_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
