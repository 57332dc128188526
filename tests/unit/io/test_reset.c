/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_reset.c -- bytes that are still in the socket when this end notices that its peer is gone. A
 * peer writes, disconnects in good order and exits, so that later sends of this end are answered by
 * a reset. The peer's bytes must count although a send is the first call to fail. After a reset
 * without an orderly end only a Terminate counts.
 */
#include "writes.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softrnic/io/conn_impl.h"
#include "softrnic/proto/rdmap.h"
#include "softrnic/rnic/qp.h"

struct where {
	uint16_t port;
	uint64_t addr;
	uint32_t rkey;
};

/* --- the peer, a process of its own ------------------------------------------------------- */

static void write_in_good_order(struct pair *p)
{
	write_quietly(p);
	softrnic_send_posted();
}

static size_t put_fpdu(uint8_t *to, const struct ddp_hdr *hdr, const void *payload, size_t len)
{
	size_t ulpdu = ddp_hdr_len(hdr->tagged) + len;

	to[0] = (uint8_t)(ulpdu >> 8);
	to[1] = (uint8_t)ulpdu;
	ddp_encode(to + MPA_LENGTH_LEN, DDP_HDR_MAX, hdr);
	memcpy(to + MPA_LENGTH_LEN + ddp_hdr_len(hdr->tagged), payload, len);
	return mpa_fpdu_len(ulpdu);
}

/* Close with unread bytes, as siw also does: the exit of the process then sends a reset. */
static void write_and_terminate(struct pair *p)
{
	struct ddp_hdr write = {.tagged = true,
				.last = true,
				.version = DDP_VERSION,
				.ulp = rdmap_ctrl(RDMAP_WRITE),
				.stag = p->rkey,
				.to = p->addr};
	struct ddp_hdr terminate = {.last = true,
				    .version = DDP_VERSION,
				    .ulp = rdmap_ctrl(RDMAP_TERMINATE),
				    .qn = DDP_QN_TERMINATE,
				    .msn = 1};
	struct conn *c = qp_owner(qp_of(p->ends.client.id->qp));
	/* Terminate: layer 1, type 1, code 0 */
	static const uint8_t word[8] = {1}, error[4] = {0x11, 0};
	uint8_t bytes[128] = {0};
	struct iovec iov = {.iov_base = bytes};

	iov.iov_len = put_fpdu(bytes, &write, word, sizeof(word));
	iov.iov_len += put_fpdu(bytes + iov.iov_len, &terminate, error, sizeof(error));
	conn_enter(c);
	if (c->link->ops->send(c->link, &iov, 1) != (ssize_t)iov.iov_len)
		_exit(5);
}

static void write_and_go(int from_parent, void (*write_last)(struct pair *p))
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
	write_last(&p);
	_exit(0);
}

static void to_peer(int fd, const struct where *w)
{
	assert_int_equal(write(fd, w, sizeof(*w)), sizeof(*w));
}

static pid_t start(struct pair *p, int to_child[2], void (*write_last)(struct pair *p))
{
	struct rdma_conn_param param = {.responder_resources = 16};
	struct where w = {0};
	pid_t child;

	assert_int_equal(pipe(to_child), 0);
	child = fork();
	if (child == 0)
		write_and_go(to_child[0], write_last);
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

/* --- this end, which sends before it receives --------------------------------------------- */

/* Send until the reset comes. The caller holds the connection's lock, so that no thread
 * receives. */
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

/* Let the peer end. The caller holds the connection's lock, so that no thread receives before
 * that. */
static void let_peer_go(struct pair *p, int to_child[2], pid_t child)
{
	struct where w = {.addr = p->addr, .rkey = p->rkey};
	int status;

	to_peer(to_child[1], &w);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(to_child[0]);
	close(to_child[1]);
}

static void bytes_before_a_reset_count_when_a_send_notices_it(void **state)
{
	struct pair p = {0};
	int to_child[2];
	pid_t child = start(&p, to_child, write_in_good_order);
	struct conn *c = qp_owner(qp_of(p.ends.server.id->qp));

	conn_enter(c);
	let_peer_go(&p, to_child, child);
	provoke_reset(c->link);
	post_send(&p, c);
	conn_leave(c);
	end_expect(&p.ends.server, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(p.words[0], 1);
	pair_close(&p);
}

static void wait_for_alarm(struct conn *c)
{
	for (int ms = 0; ms < 20000 && !atomic_load(&c->alarm); ms++)
		usleep(1000);
	assert_int_equal(atomic_load(&c->alarm), 1);
}

static void a_terminate_before_a_reset_counts_and_a_write_does_not(void **state)
{
	struct pair p = {0};
	int to_child[2];
	pid_t child = start(&p, to_child, write_and_terminate);
	struct conn *c = qp_owner(qp_of(p.ends.server.id->qp));
	struct ibv_wc wc;

	assert_int_equal(end_post_recv(&p.ends.server, 1), 0);
	conn_enter(c);
	let_peer_go(&p, to_child, child);
	wait_for_alarm(c);
	conn_leave(c);
	end_expect(&p.ends.server, RDMA_CM_EVENT_DISCONNECTED);
	wc = end_wait_wc(&p.ends.server);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.vendor_err,
			 vext_vendor_err(VEXT_REASON_TERMINATE_IN, TERM_DDP_INVALID_STAG));
	assert_int_equal(p.words[0], 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_before_a_reset_count_when_a_send_notices_it),
		cmocka_unit_test(a_terminate_before_a_reset_counts_and_a_write_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
