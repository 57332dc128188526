/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver is stopped for longer than SOFTRNIC_DRAIN_MS. Meanwhile its peer's Sends complete, and
 * the peer disconnects in good order and stops waiting. The Sends must still arrive when the
 * receiver runs again, even if the receiver first sends to the peer.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends.h"

/*
 * More messages than the stopped receiver's kernel can hold and than the receiver can park, but
 * fewer than the sender's kernel can hold.
 */
#define MESSAGES 120
#define POSTED   4 /* receives that are posted at the same time */

struct pair {
	pid_t receiver;
	struct end sender;
	void (*spoil)(struct end *receiver); /* what the receiver does in addition */
};

/* --- the receiver: a process of its own ------------------------------------------------------ */

/* Receive until the first error, or the last message. */
static unsigned receive_all(struct end *e, void (*spoil)(struct end *))
{
	unsigned got = 0;

	for (;;) {
		struct ibv_wc wc = end_wait_wc(e);

		if (wc.opcode != IBV_WC_RECV)
			continue;
		if (wc.status != IBV_WC_SUCCESS || wc.byte_len != END_BUF || ++got == MESSAGES)
			return got;
		spoil(e);
		end_post_recv(e, got);
	}
}

static void receiver(int port_fd, void (*spoil)(struct end *))
{
	struct end listener, e;
	uint16_t port;

	end_open(&listener);
	port = end_bind(&listener);
	assert_int_equal(softrnic_listen(listener.id, 1), 0);
	assert_int_equal(write(port_fd, &port, sizeof(port)), sizeof(port));
	end_take(&listener, &e);
	for (unsigned i = 0; i < POSTED; i++)
		assert_int_equal(end_post_recv(&e, i), 0);
	assert_int_equal(softrnic_accept(e.id, NULL), 0);
	end_expect(&e, RDMA_CM_EVENT_ESTABLISHED);
	_exit(receive_all(&e, spoil));
}

/* --- the sender ------------------------------------------------------------------------------ */

static void begin(struct pair *p, void (*spoil)(struct end *))
{
	int port_fd[2], status;
	uint16_t port;

	assert_int_equal(pipe(port_fd), 0);
	p->receiver = fork();
	assert_true(p->receiver >= 0);
	if (p->receiver == 0)
		receiver(port_fd[1], spoil);
	close(port_fd[1]);
	assert_int_equal(read(port_fd[0], &port, sizeof(port)), sizeof(port));
	close(port_fd[0]);
	end_open(&p->sender);
	end_aim(&p->sender, port);
	assert_int_equal(softrnic_connect(p->sender.id, NULL), 0);
	end_expect(&p->sender, RDMA_CM_EVENT_ESTABLISHED);
	assert_int_equal(kill(p->receiver, SIGSTOP), 0);
	assert_int_equal(waitpid(p->receiver, &status, WUNTRACED), p->receiver);
	assert_true(WIFSTOPPED(status));
}

static void send_all(struct end *e)
{
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(end_post_send(e, i, END_BUF), 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_int_equal(end_wait_wc(e).status, IBV_WC_SUCCESS);
}

/* Let the receiver run again. Returns how many messages it gets. */
static unsigned resume(struct pair *p)
{
	int status;

	assert_int_equal(kill(p->receiver, SIGCONT), 0);
	assert_int_equal(waitpid(p->receiver, &status, 0), p->receiver);
	assert_true(WIFEXITED(status));
	return (unsigned)WEXITSTATUS(status);
}

/* --- tests ----------------------------------------------------------------------------------- */

static void be_silent(struct end *e)
{
}

/* The receiver sends messages for which the peer has no receive. */
static void answer(struct end *e)
{
	/* the post fails with EINVAL once the connection's end is noticed */
	end_post_send(e, 1000, 16);
}

static void what_was_sent_in_good_order_arrives(void (*spoil)(struct end *))
{
	struct pair p;

	begin(&p, spoil);
	send_all(&p.sender);
	assert_int_equal(softrnic_disconnect(p.sender.id), 0);
	end_expect(&p.sender, RDMA_CM_EVENT_DISCONNECTED);
	softrnic_destroy_qp(p.sender.id);
	end_close(&p.sender);
	assert_int_equal(resume(&p), MESSAGES);
}

static void sends_arrive_at_a_silent_receiver(void **state)
{
	what_was_sent_in_good_order_arrives(be_silent);
}

static void sends_arrive_at_a_receiver_that_answers(void **state)
{
	what_was_sent_in_good_order_arrives(answer);
}

static int be_quick(void **state)
{
	return setenv("SOFTRNIC_DRAIN_MS", "300", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_arrive_at_a_silent_receiver),
		cmocka_unit_test(sends_arrive_at_a_receiver_that_answers),
	};

	return cmocka_run_group_tests(tests, be_quick, NULL);
}
