/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_exit.c -- a process posts requests and ends immediately: the requests arrive, whichever
 * thread had to send them.
 */
#include "writes.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softrnic/io/conn_impl.h"

enum { PROCESSES = 20, PATIENCE_S = 20, HELD_LOOKS = 5000 };

/* --- hold a thread of the engine that is about to send the Write -------------------------- */

static atomic_bool hold, held, exits, go_on;

bool __real_conn_bell_is_due(struct conn *c);
bool __wrap_conn_bell_is_due(struct conn *c);
bool __wrap_conn_bell_is_due(struct conn *c)
{
	/* The main thread also calls this function, and must not be held. */
	if (atomic_load(&hold) && gettid() != getpid()) {
		atomic_store(&held, true);
		while (!atomic_load(&go_on))
			sched_yield();
		start_clock(); /* now the timer of the Write is due */
	}
	return __real_conn_bell_is_due(c);
}

/* Replaces usleep(), in which the ending process waits for the connection. */
int __real_usleep(useconds_t us);
int __wrap_usleep(useconds_t us);
int __wrap_usleep(useconds_t us)
{
	if (atomic_load(&exits))
		atomic_store(&go_on, true);
	return __real_usleep(us);
}

/* --- a kernel that holds bytes back ------------------------------------------------------- */

/* number of following calls of ioctl() that report bytes as not sent yet */
static atomic_int kept_back;

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (request != SIOCOUTQNSD || atomic_load(&kept_back) == 0)
		return __real_ioctl(fd, request, arg);
	*(int *)arg = 1;
	atomic_fetch_sub(&kept_back, 1);
	return 0;
}

/* --- a process that writes and then exits ------------------------------------------------- */

struct where {
	uint16_t port;
	uint64_t addr;
	uint32_t rkey;
};

typedef void ending(struct pair *p);

static void write_and_end(int from_parent, ending *end)
{
	struct rdma_conn_param param = {.initiator_depth = 16};
	static struct pair p;
	struct where w;

	alarm(PATIENCE_S);
	end_signals_all = 0;
	if (read(from_parent, &w, sizeof(w)) != sizeof(w))
		_exit(2);
	end_open(&p.ends.client);
	end_aim(&p.ends.client, w.port);
	assert_int_equal(softrnic_connect(p.ends.client.id, &param), 0);
	end_expect(&p.ends.client, RDMA_CM_EVENT_ESTABLISHED);
	if (read(from_parent, &w, sizeof(w)) != sizeof(w))
		_exit(3);
	p.addr = w.addr;
	p.rkey = w.rkey;
	end(&p);
	_exit(4);
}

static void send_where(int fd, const struct where *w)
{
	assert_int_equal(write(fd, w, sizeof(*w)), sizeof(*w));
}

/* Start a server here and a client in another process. The client's process exits by calling
 * `end`. */
static int run_until_arrival(ending *end)
{
	struct rdma_conn_param param = {.responder_resources = 16};
	struct where w = {0};
	int to_child[2], status;
	struct pair p = {0};
	pid_t child;

	assert_int_equal(pipe(to_child), 0);
	child = fork();
	if (child == 0)
		write_and_end(to_child[0], end);
	end_open(&p.ends.listener);
	w.port = end_bind(&p.ends.listener);
	assert_int_equal(softrnic_listen(p.ends.listener.id, 4), 0);
	send_where(to_child[1], &w);
	end_take(&p.ends.listener, &p.ends.server);
	assert_int_equal(softrnic_accept(p.ends.server.id, &param), 0);
	end_expect(&p.ends.server, RDMA_CM_EVENT_ESTABLISHED);
	pair_register(&p);
	w.addr = p.addr;
	w.rkey = p.rkey;
	send_where(to_child[1], &w);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status)); /* any status, because a sanitizer may report leaks */
	p.next = TEACH + 1;
	/* after the client has exited no message arrives */
	end_expect(&p.ends.server, RDMA_CM_EVENT_DISCONNECTED);
	assert_int_equal(p.words[0], p.next);
	close(to_child[0]);
	close(to_child[1]);
	pair_close(&p);
	return WEXITSTATUS(status);
}

static void expect_arrival(ending *end)
{
	run_until_arrival(end);
}

/* --- the ways to end ---------------------------------------------------------------------- */

static void end_while_it_waits(struct pair *p)
{
	teach(p);
	write_quietly(p);
	exit(0);
}

static void an_exit_sends_what_waits(void **state)
{
	expect_arrival(end_while_it_waits);
}

static void end_while_the_engine_has_it(struct pair *p)
{
	teach(p);
	atomic_store(&hold, true);
	write_quietly(p);
	/* If the engine sent the Write while it looked for the previous answer, this run proves
	 * nothing. */
	for (int looks = 0; looks < HELD_LOOKS && !atomic_load(&held); looks++)
		usleep(100);
	atomic_store(&exits, true);
	exit(0);
}

static void an_exit_waits_for_the_engine_to_send(void **state)
{
	expect_arrival(end_while_the_engine_has_it);
}

static const char path[] = "exit.file";

/* Make a region of a file. A thread that stores to such memory may wait for the file system, so
 * only the engine receives into it. */
static struct ibv_mr *file_region(struct pair *p, uint64_t **word)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct ibv_mr *mr;

	if (fd < 0 || ftruncate(fd, END_BUF))
		_exit(5);
	*word = mmap(NULL, END_BUF, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (*word == MAP_FAILED)
		_exit(6);
	mr = softrnic_reg_mr(p->ends.client.pd, *word, END_BUF, IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		_exit(7);
	return mr;
}

static void write_from_file(struct pair *p)
{
	uint64_t *word;
	struct ibv_mr *mr = file_region(p, &word);
	struct ibv_sge sge = {.addr = (uintptr_t)word, .length = sizeof(*word), .lkey = mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;

	*word = TEACH + 1;
	wr.wr.rdma.remote_addr = p->addr;
	wr.wr.rdma.rkey = p->rkey;
	if (ibv_post_send(p->ends.client.id->qp, &wr, &bad))
		_exit(8);
}

static void end_after_a_write_from_a_file(struct pair *p)
{
	write_from_file(p);
	exit(0);
}

static void an_exit_waits_for_what_only_the_engine_may_send(void **state)
{
	for (int i = 0; i < PROCESSES; i++)
		expect_arrival(end_after_a_write_from_a_file);
	unlink(path);
}

static void end_without_exit_handlers(struct pair *p)
{
	teach(p);
	start_clock();
	write_quietly(p);
	softrnic_send_posted();
	_exit(0);
}

/* The process calls softrnic_send_posted(), as before execve(). A signal handler may have
 * interrupted this thread anywhere, so this thread must not send the bytes itself. */
static void a_process_can_wait_until_all_is_sent(void **state)
{
	for (int i = 0; i < PROCESSES; i++)
		expect_arrival(end_without_exit_handlers);
}

static void end_without_exit_handlers_from_a_file(struct pair *p)
{
	write_from_file(p);
	softrnic_send_posted();
	_exit(0);
}

static void a_process_can_wait_for_what_only_the_engine_may_send(void **state)
{
	for (int i = 0; i < PROCESSES; i++)
		expect_arrival(end_without_exit_handlers_from_a_file);
	unlink(path);
}

enum { KEPT_BACK = 5 };

/* A reset would drop the bytes that the kernel has not sent yet. */
static void end_while_the_kernel_keeps_it(struct pair *p)
{
	teach(p);
	start_clock();
	write_quietly(p);
	atomic_store(&kept_back, KEPT_BACK);
	softrnic_send_posted();
	_exit(atomic_load(&kept_back) == 0 ? 0 : 9);
}

static void a_process_waits_until_what_was_sent_has_left(void **state)
{
	assert_int_equal(run_until_arrival(end_while_the_kernel_keeps_it), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exit_sends_what_waits),
		cmocka_unit_test(an_exit_waits_for_the_engine_to_send),
		cmocka_unit_test(an_exit_waits_for_what_only_the_engine_may_send),
		cmocka_unit_test(a_process_can_wait_until_all_is_sent),
		cmocka_unit_test(a_process_can_wait_for_what_only_the_engine_may_send),
		cmocka_unit_test(a_process_waits_until_what_was_sent_has_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
