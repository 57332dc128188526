/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_former.c -- a connection is established only when no byte of the initiator's former
 * connections can be placed any more. The target's memory is a page that is missing until the test
 * supplies it (userfaultfd). Until then, a thread that places a Write into the page is stuck.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ends_ext.h"

#define PAGE       4096
#define CONNECT_MS 2000
#define MANY       30
#define OWNER      "the owner of this data"

struct stuck {
	struct ends d;
	int uffd;
};

/* --- the page ------------------------------------------------------------------------------- */

static void stuck_open(struct stuck *s)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};

	memset(s, 0, sizeof(*s));
	ends_listen(&s->d, NULL);
	s->d.cli_buf = ends_map(ENDS_BUF);
	s->d.srv_buf =
		mmap(NULL, ENDS_BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->d.cli_mr = ends_reg(&s->d, s->d.cli_buf, ENDS_BUF);
	s->d.srv_mr = ends_reg(&s->d, s->d.srv_buf, ENDS_BUF);
	s->d.at_srv = ends_remote(s->d.srv_mr);
	s->d.at_cli = ends_remote(s->d.cli_mr);
	s->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	assert_true(s->uffd >= 0);
	assert_int_equal(ioctl(s->uffd, UFFDIO_API, &api), 0);
	reg.range.start = (uintptr_t)s->d.srv_buf;
	reg.range.len = PAGE;
	assert_int_equal(ioctl(s->uffd, UFFDIO_REGISTER, &reg), 0);
}

static void stuck_wait(const struct stuck *s)
{
	struct pollfd fd = {.fd = s->uffd, .events = POLLIN};

	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_int_equal(fd.revents, POLLIN);
}

static void stuck_let_go(const struct stuck *s)
{
	struct uffdio_zeropage zero = {.range = {.start = (uintptr_t)s->d.srv_buf, .len = PAGE}};

	assert_int_equal(ioctl(s->uffd, UFFDIO_ZEROPAGE, &zero), 0);
}

static void stuck_close(struct stuck *s)
{
	ends_close(&s->d);
	close(s->uffd);
}

/* --- connections ---------------------------------------------------------------------------- */

struct pair {
	struct rpma_conn *cli, *srv;
};

static void dial(struct ends *d, const char *owner, int limit_ms, struct pair *p)
{
	struct rpma_conn_cfg *cfg = ends_cfg(0, 0, 0, 0);
	struct rpma_conn_req *req;

	OK(rpma_conn_cfg_set_connect_timeout(cfg, limit_ms));
	OK(rpma_conn_cfg_set_owner(cfg, owner, owner ? strlen(owner) : 0));
	OK(rpma_conn_req_new(d->peer, ends_addr(), d->port, cfg, &req));
	OK(rpma_conn_req_connect(&req, NULL, &p->cli));
	OK(rpma_ep_next_conn_req_timeout(d->ep, NULL, 10000, &req));
	OK(rpma_conn_req_connect(&req, NULL, &p->srv));
	OK(rpma_conn_cfg_delete(&cfg));
}

static void connects(struct ends *d, const char *owner, struct pair *p)
{
	dial(d, owner, 0, p);
	ends_expect_event(p->cli, RPMA_CONN_ESTABLISHED);
	ends_expect_event(p->srv, RPMA_CONN_ESTABLISHED);
}

static void drop(struct pair *p)
{
	OK(rpma_conn_delete(&p->cli));
	OK(rpma_conn_delete(&p->srv));
}

/* Neither end is established, and both report the reason. */
static void fails_to_connect(struct ends *d, const char *owner)
{
	struct pair p;

	dial(d, owner, CONNECT_MS, &p);
	ends_expect_event(p.cli, RPMA_CONN_LOST);
	assert_non_null(strstr(rpma_err_last(), "still place bytes"));
	ends_expect_event(p.srv, RPMA_CONN_LOST);
	drop(&p);
}

static void write_8(struct ends *d, struct rpma_conn *conn, const char *bytes)
{
	memcpy(d->cli_buf, bytes, 8);
	OK(rpma_write(conn, d->at_srv, 0, d->cli_mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, NULL));
}

/* Write a value, and check that no Write of an earlier connection changes the value later. */
static void writes_and_stays(struct ends *d, struct rpma_conn *conn)
{
	write_8(d, conn, "the next");
	ends_flush(conn, d->at_srv, 0, 8);
	ends_sleep_ms(20);
	assert_memory_equal(d->srv_buf, "the next", 8);
}

/* --- one process ---------------------------------------------------------------------------- */

static void a_stuck_write_keeps_the_next_connection_from_being_established(void **state)
{
	struct pair lives, former, next;
	struct stuck s;

	stuck_open(&s);
	connects(&s.d, NULL, &lives);
	connects(&s.d, NULL, &former);
	write_8(&s.d, former.cli, "a former");
	stuck_wait(&s);
	OK(rpma_conn_delete(&former.cli));
	fails_to_connect(&s.d, NULL);
	fails_to_connect(&s.d, NULL); /* this attempt names the former connection again */
	stuck_let_go(&s);
	connects(&s.d, NULL, &next);
	writes_and_stays(&s.d, next.cli);
	/* the client has not given up lives.cli, so no later connection ended it */
	writes_and_stays(&s.d, lives.cli);
	drop(&next);
	drop(&former);
	drop(&lives);
	stuck_close(&s);
}

/*
 * Expect the HELLO, the last Origin, and this number of questions about former connections. A
 * connection that uses rings from its first message on also counts the messages that move it to the
 * rings.
 */
static void expect_questions(const struct rpma_conn *cli, unsigned questions)
{
	if (getenv("SOFTRNIC_SHM_AFTER"))
		return;
	assert_int_equal(ends_counter(cli, "tx_fpdus"), 2 + questions);
}

static void many_are_one_question(void **state)
{
	struct pair p[MANY], next;
	struct ends d;

	memset(&d, 0, sizeof(d));
	ends_listen(&d, NULL);
	for (int i = 0; i < MANY; i++)
		connects(&d, NULL, &p[i]);
	for (int i = 0; i < MANY; i++)
		if (i != MANY / 2)
			OK(rpma_conn_delete(&p[i].cli));
	connects(&d, NULL, &next);
	expect_questions(next.cli, 1);
	for (int i = 0; i < MANY; i++) {
		enum rpma_conn_event ev;

		assert_int_equal(ends_event_within(p[i].srv, i == MANY / 2 ? 0 : 5000, &ev),
				 i != MANY / 2);
		drop(&p[i]);
	}
	drop(&next);
	ends_close(&d);
}

static void an_orderly_end_needs_no_question(void **state)
{
	struct pair former, next;
	struct ends d;

	memset(&d, 0, sizeof(d));
	ends_listen(&d, NULL);
	connects(&d, NULL, &former);
	OK(rpma_conn_disconnect(former.cli));
	ends_expect_event(former.cli, RPMA_CONN_CLOSED);
	connects(&d, NULL, &next);
	expect_questions(next.cli, 0);
	drop(&former);
	drop(&next);
	ends_close(&d);
}

/* --- two processes -------------------------------------------------------------------------- */

/*
 * Connect, and wait until the pipe is readable. Then write and keep the connection if `owner` is
 * set, otherwise flush. Returns an exit code. The child must not write earlier: the parent's thread
 * that accepts would place this Write, and would be stuck.
 */
static int child(struct stuck *s, const char *owner, int go)
{
	struct rpma_conn_cfg *cfg = NULL;
	struct rpma_conn_req *req = NULL;
	struct rpma_conn *conn = NULL;
	struct rpma_mr_local *mr = NULL;
	struct rpma_mr_remote *remote = NULL;
	struct rpma_peer *peer = NULL;
	struct ibv_context *ctx;
	enum rpma_conn_event ev;
	static char bytes[PAGE] = "a former";
	uint8_t desc[64];
	size_t size;
	char c;

	rpma_mr_get_descriptor_size(s->d.srv_mr, &size);
	rpma_mr_get_descriptor(s->d.srv_mr, desc);
	if (rpma_utils_get_ibv_context(ends_addr(), RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx) ||
	    rpma_peer_new(ctx, &peer) || rpma_conn_cfg_new(&cfg) ||
	    rpma_conn_cfg_set_owner(cfg, owner, owner ? strlen(owner) : 0) ||
	    rpma_conn_req_new(peer, ends_addr(), s->d.port, cfg, &req) ||
	    rpma_conn_req_connect(&req, NULL, &conn) || rpma_conn_next_event(conn, &ev) ||
	    ev != RPMA_CONN_ESTABLISHED ||
	    rpma_mr_reg(peer, bytes, PAGE, RPMA_MR_USAGE_WRITE_SRC, &mr) ||
	    rpma_mr_remote_from_descriptor(desc, size, &remote))
		return 1;
	if (read(go, &c, 1) != 1)
		return 2;
	if (owner && (rpma_write(conn, remote, 0, mr, 0, 8, RPMA_F_COMPLETION_ON_ERROR, NULL) ||
		      read(go, &c, 1) != 1))
		return 3;
	/* The child's Origin does not name its parent's connections, so the child asks no questions
	 * about them. */
	if (!owner && !getenv("SOFTRNIC_SHM_AFTER") && ends_counter(conn, "tx_fpdus") != 2)
		return 4;
	ends_flush(conn, remote, 0, 8);
	return 0;
}

static pid_t start_child(struct stuck *s, const char *owner, struct rpma_conn **srv, int *go)
{
	struct rpma_conn_req *req;
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fd[1]);
		_exit(child(s, owner, fd[0]));
	}
	close(fd[0]);
	OK(rpma_ep_next_conn_req_timeout(s->d.ep, NULL, 10000, &req));
	OK(rpma_conn_req_connect(&req, NULL, srv));
	ends_expect_event(*srv, RPMA_CONN_ESTABLISHED);
	*go = fd[1];
	return pid;
}

static void an_owner_ends_what_its_killed_process_had(void **state)
{
	struct rpma_conn *killed;
	struct pair next;
	struct stuck s;
	int go, status;
	pid_t pid;

	stuck_open(&s);
	pid = start_child(&s, OWNER, &killed, &go);
	assert_int_equal(write(go, "", 1), 1);
	stuck_wait(&s);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fails_to_connect(&s.d, OWNER);
	stuck_let_go(&s);
	connects(&s.d, OWNER, &next);
	expect_questions(next.cli, 1);
	writes_and_stays(&s.d, next.cli);
	drop(&next);
	OK(rpma_conn_delete(&killed));
	close(go);
	stuck_close(&s);
}

static void another_process_is_left_alone(void **state)
{
	struct rpma_conn *other;
	struct pair former, next;
	struct stuck s;
	int go, status;
	pid_t pid;

	stuck_open(&s);
	stuck_let_go(&s);
	connects(&s.d, OWNER, &former);
	OK(rpma_conn_delete(&former.cli));
	pid = start_child(&s, NULL, &other, &go);
	connects(&s.d, OWNER, &next);
	assert_int_equal(write(go, "", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	drop(&next);
	drop(&former);
	OK(rpma_conn_delete(&other));
	close(go);
	stuck_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stuck_write_keeps_the_next_connection_from_being_established),
		cmocka_unit_test(many_are_one_question),
		cmocka_unit_test(an_orderly_end_needs_no_question),
		cmocka_unit_test(an_owner_ends_what_its_killed_process_had),
		cmocka_unit_test(another_process_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
