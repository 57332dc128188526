/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_visible.c -- a completion means that the data are visible at the target. When a signalled
 * Write or Send completes, the initiator sends a byte through a pipe to the target's process, which
 * then reads its memory. The target's process never polls the connection, so only the completion
 * can have waited for the data. With VISIBLE_LATE=1, which is for completions without Acks, some
 * data must be late.
 */
#include "system/lib/check.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "unit/io/ends.h"

#define ROUNDS    (SYSTEM_SANITIZED ? 500 : 5000)
#define MESSAGES  4 /* messages of a round; only the last one is signalled */
#define PLACE_LEN (64u << 10)

static uint8_t memory[MESSAGES][PLACE_LEN]; /* the sources, or the targets, of this process */

static uint32_t length_of(uint64_t round, unsigned i)
{
	static const uint32_t lens[] = {8, 64, 1500, 4096};

	return round % 32 == 0 ? PLACE_LEN : lens[(round + i) % ARRAY_LEN(lens)];
}

/* Every fourth round ends with a Send, all other rounds with a Write. */
static bool is_send(uint64_t round, unsigned i)
{
	return i == MESSAGES - 1 && round % 4 == 3;
}

static uint64_t stamp_of(uint64_t round, unsigned i)
{
	return round * MESSAGES + i + 1;
}

static void stamp(uint64_t round, unsigned i)
{
	uint64_t value = stamp_of(round, i);

	memcpy(memory[i], &value, sizeof(value));
	memcpy(memory[i] + length_of(round, i) - sizeof(value), &value, sizeof(value));
}

static bool is_there(uint64_t round, unsigned i)
{
	uint64_t value = stamp_of(round, i);

	return !memcmp(memory[i], &value, sizeof(value)) &&
	       !memcmp(memory[i] + length_of(round, i) - sizeof(value), &value, sizeof(value));
}

static struct ibv_mr *reg_memory(struct end *e)
{
	struct ibv_mr *mr = softrnic_reg_mr(e->pd, memory, sizeof(memory),
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	assert_non_null(mr);
	return mr;
}

/* --- the target ----------------------------------------------------------------------------- */

struct pipes {
	int to_target[2], from_target[2];
};

struct greeting { /* private data of the reply */
	uint64_t addr;
	uint32_t rkey;
};

static void post_receive(struct end *e, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)memory[MESSAGES - 1], PLACE_LEN, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	assert_int_equal(ibv_post_recv(e->id->qp, &wr, &bad), 0);
}

static bool is_round_there(uint64_t round)
{
	for (unsigned i = 0; i < MESSAGES; i++)
		if (!is_there(round, i))
			return false;
	return true;
}

/* Read the memory before polling the queue, because the poll could receive late bytes. */
static char look(struct end *e, const struct ibv_mr *mr, uint64_t round)
{
	char answer = is_round_there(round) ? 'y' : 'n';

	if (is_send(round, MESSAGES - 1)) {
		assert_int_equal(end_wait_wc(e).status, IBV_WC_SUCCESS);
		post_receive(e, mr);
	}
	return answer;
}

static void serve(const struct pipes *p)
{
	struct end listener, server;
	struct greeting hello;
	struct rdma_conn_param param = {.private_data = &hello, .private_data_len = sizeof(hello)};
	struct ibv_mr *mr;
	uint16_t port;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	end_open(&listener);
	port = end_bind(&listener);
	assert_int_equal(softrnic_listen(listener.id, 1), 0);
	assert_int_equal(write(p->from_target[1], &port, sizeof(port)), sizeof(port));
	end_take(&listener, &server);
	mr = reg_memory(&server);
	hello = (struct greeting){(uintptr_t)memory, mr->rkey};
	post_receive(&server, mr);
	assert_int_equal(softrnic_accept(server.id, &param), 0);
	end_expect(&server, RDMA_CM_EVENT_ESTABLISHED);
	for (uint64_t round = 0; read(p->to_target[0], &byte, 1) == 1; round++) {
		byte = look(&server, mr, round);
		assert_int_equal(write(p->from_target[1], &byte, 1), 1);
	}
	softrnic_disconnect(server.id);
	assert_int_equal(softrnic_dereg_mr(mr), 0);
	end_close(&server);
	end_close(&listener);
}

static pid_t start_target(struct pipes *p)
{
	pid_t pid;

	assert_int_equal(pipe(p->to_target) | pipe(p->from_target), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(p->to_target[1]);
		serve(p);
		_exit(0);
	}
	close(p->to_target[0]);
	close(p->from_target[1]);
	return pid;
}

/* --- the initiator -------------------------------------------------------------------------- */

static struct greeting connect_to(struct end *e, const struct pipes *p)
{
	struct rdma_conn_param param = {.initiator_depth = 1, .responder_resources = 1};
	struct rdma_cm_event *ev;
	struct greeting hello;
	uint16_t port;

	assert_int_equal(read(p->from_target[0], &port, sizeof(port)), sizeof(port));
	end_open(e);
	end_aim(e, port);
	assert_int_equal(softrnic_connect(e->id, &param), 0);
	assert_int_equal(softrnic_wait_cm_event(e->channel, 5000, &ev), 0);
	assert_int_equal(ev->event, RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&hello, ev->param.conn.private_data, sizeof(hello));
	softrnic_ack_cm_event(ev);
	return hello;
}

static void post_message(struct end *e, const struct ibv_mr *mr, const struct greeting *target,
			 uint64_t round, unsigned i)
{
	struct ibv_sge sge = {(uintptr_t)memory[i], length_of(round, i), mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = round,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = is_send(round, i) ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = i == MESSAGES - 1 ? IBV_SEND_SIGNALED : 0,
	};
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = target->addr + i * PLACE_LEN;
	wr.wr.rdma.rkey = target->rkey;
	stamp(round, i);
	assert_int_equal(ibv_post_send(e->id->qp, &wr, &bad), 0);
}

static void await_completion(struct end *e, uint64_t round)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(e->cq, 1, &wc) == 0)
		sched_yield();
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, round);
}

/* Ask the target. Returns true if the target sees all operations that are complete at this end. */
static bool ask_target(const struct pipes *p)
{
	char byte = '?';

	assert_int_equal(write(p->to_target[1], &byte, 1), 1);
	assert_int_equal(read(p->from_target[0], &byte, 1), 1);
	return byte == 'y';
}

static void what_has_completed_is_there(void **state)
{
	unsigned rounds = env_or("VISIBLE_ROUNDS", ROUNDS), late = 0;
	struct greeting target;
	struct pipes p;
	struct ibv_mr *mr;
	struct end e;
	int status;
	pid_t pid;

	end_signals_all = 0;
	pid = start_target(&p);
	target = connect_to(&e, &p);
	mr = reg_memory(&e);
	for (uint64_t round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < MESSAGES; i++)
			post_message(&e, mr, &target, round, i);
		await_completion(&e, round);
		late += !ask_target(&p);
	}
	close(p.to_target[1]);
	softrnic_disconnect(e.id);
	assert_int_equal(softrnic_dereg_mr(mr), 0);
	end_close(&e);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	print_message("%u rounds: the data were late in %u\n", rounds, late);
	if (env_or("VISIBLE_LATE", 0))
		assert_true(late > 0);
	else
		assert_int_equal(late, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_has_completed_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
