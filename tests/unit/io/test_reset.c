/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reset.c -- a peer writes and is gone; what this end sends then is answered by a reset. The
 * bytes that came before it are in the socket still, and count, although a send is the first to
 * fail.
 */
#include "writes.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softrnic/io/conn_impl.h"
#include "softrnic/rnic/qp.h"

struct where {
	uint16_t port;
	uint64_t addr;
	uint32_t rkey;
};

/* --- the peer, in a process of its own ---------------------------------------------------- */

static void write_and_go(int from_parent)
{
	struct rdma_conn_param param = {.initiator_depth = 16};
	static struct pair p;
	struct where w;

	alarm(30);
	end_signals_all = 0;
	if (read(from_parent, &w, sizeof(w)) != sizeof(w))
		_exit(2);
	end_open(&p.ends.client);
	end_aim(&p.ends.client, w.port);
	if (softrnic_connect(p.ends.client.id, &param))
		_exit(3);
	end_expect(&p.ends.client, RDMA_CM_EVENT_ESTABLISHED);
	if (read(from_parent, &w, sizeof(w)) != sizeof(w))
		_exit(4);
	p.addr = w.addr;
	p.rkey = w.rkey;
	write_quietly(&p);
	softrnic_send_posted();
	_exit(0);
}

static void to_peer(int fd, const struct where *w)
{
	assert_int_equal(write(fd, w, sizeof(*w)), sizeof(*w));
}

static pid_t start(struct pair *p, int to_child[2])
{
	struct rdma_conn_param param = {.responder_resources = 16};
	struct where w = {0};
	pid_t child;

	assert_int_equal(pipe(to_child), 0);
	child = fork();
	if (child == 0)
		write_and_go(to_child[0]);
	end_open(&p->ends.listener);
	w.port = end_bind(&p->ends.listener);
	assert_int_equal(softrnic_listen(p->ends.listener.id, 4), 0);
	to_peer(to_child[1], &w);
	end_take(&p->ends.listener, &p->ends.server);
	assert_int_equal(softrnic_accept(p->ends.server.id, &param), 0);
	end_expect(&p->ends.server, RDMA_CM_EVENT_ESTABLISHED);
	pair_register(p);
	return child;
}

/* --- this end, which sends before it reads ------------------------------------------------ */

/* With the connection's lock, so that nothing is read: bytes go out until the reset is here. */
static void provoke_reset(struct link *link)
{
	struct iovec byte = {.iov_base = (char *)"", .iov_len = 1};
	ssize_t sent;

	for (int ms = 0; ms < 20000; ms++) {
		sent = link->ops->send(link, &byte, 1);
		if (sent < 0) {
			assert_true(sent == -ECONNRESET || sent == -EPIPE);
			return;
		}
		usleep(1000);
	}
	fail_msg("no reset");
}

static void post_send(struct pair *p, struct conn *c)
{
	struct end *e = &p->ends.server;
	struct ibv_sge sge = {.addr = (uintptr_t)e->buf, .length = 8, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	assert_int_equal(stream_post_send(c->stream, &wr, &bad, NULL), 0);
	conn_settle(c);
}

static void bytes_before_a_reset_count_when_a_send_notices_it(void **state)
{
	struct pair p = {0};
	int to_child[2], status;
	pid_t child = start(&p, to_child);
	struct conn *c = qp_owner(qp_of(p.ends.server.id->qp));
	struct where w = {.addr = p.addr, .rkey = p.rkey};

	conn_enter(c);
	to_peer(to_child[1], &w);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	provoke_reset(c->link);
	post_send(&p, c);
	conn_leave(c);
	end_expect(&p.ends.server, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(p.words[0], 1);
	close(to_child[0]);
	close(to_child[1]);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_before_a_reset_count_when_a_send_notices_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
