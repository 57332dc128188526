/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * While a connection moves to rings, the process forks at each step that releases a descriptor. The
 * child then closes its copy of the connection. The child must not close or use a released
 * descriptor, because the descriptor's number may belong to another file.
 */
#include "ends.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shm_state.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/link_shm_impl.h"
#include "softrnic/io/link_shm_meet.h"
#include "softrnic/io/link_shm_socket.h"
#include "softrnic/verbs/id.h"

#define LIMIT_NS (10 * NSEC_PER_SEC)

static pid_t self;
static atomic_bool forks;
static atomic_int children, bad_children;
static bool memory_fails; /* true: the initiator cannot map the memory */
static atomic_int file_mappings;
static bool is_guessed; /* a program that is not the peer calls first */
static int stranger = -1;

static bool is_open(int fd)
{
	return fd < 0 || fcntl(fd, F_GETFD) >= 0;
}

/* other: an open descriptor that does not belong to the connection; -1: there is none. */
static void fork_here(int other)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(is_open(other) ? 0 : 3);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	atomic_fetch_add(&children, 1);
	atomic_fetch_add(&bad_children, status != 0);
}

int __real_close(int fd);
int __wrap_close(int fd);
void __real_meet_delete(struct meet *m);
void __wrap_meet_delete(struct meet *m);
void __real_link_shm_undo(struct link **l);
void __wrap_link_shm_undo(struct link **l);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __real_listen(int fd, int calls);
int __wrap_listen(int fd, int calls);

/* Close the descriptor, and open a file that gets its number, as another thread could. */
int __wrap_close(int fd)
{
	int ret = __real_close(fd), other;

	if (ret || !forks || getpid() != self)
		return ret;
	other = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, fd);
	if (other == fd)
		fork_here(fd);
	if (other >= 0)
		__real_close(other);
	return 0;
}

void __wrap_meet_delete(struct meet *m)
{
	__real_meet_delete(m);
	if (m && forks && getpid() == self)
		fork_here(-1);
}

void __wrap_link_shm_undo(struct link **l)
{
	__real_link_shm_undo(l);
	if (forks && getpid() == self)
		fork_here(-1);
}

/* The responder maps the memory file first, the initiator second. */
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (memory_fails && fd >= 0 && atomic_fetch_add(&file_mappings, 1) == 1) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(addr, len, prot, flags, fd, offset);
}

/* Connect to the Unix socket. Returns -1 if the listener is not such a socket. */
static int call_socket(int listener)
{
	struct sockaddr_un name;
	socklen_t len = sizeof(name);
	int fd;

	assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &len), 0);
	if (name.sun_family != AF_UNIX)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, len), 0);
	return fd;
}

int __wrap_listen(int listener, int calls)
{
	struct shm_packet guess = shm_packet_of(SHM_PACKET_NONCE, (uint8_t[EXT_LINK_TOKEN]){6});
	int ret = __real_listen(listener, calls), fd = is_guessed ? call_socket(listener) : -1;

	if (fd >= 0) {
		stranger = fd;
		shm_socket_send(stranger, &guess, -1);
	}
	return ret;
}

/* --- a connection --------------------------------------------------------------------------- */

static struct conn *conn_of(struct end *e)
{
	return container_of(e->id, struct cmid, pub)->conn;
}

static uint64_t state_of(struct end *e)
{
	struct conn *c = conn_of(e);
	uint64_t state;

	conn_enter(c);
	state = stream_counters(c->stream)->shm_state;
	conn_leave(c);
	return state;
}

static void exchange(struct ends *e)
{
	assert_int_equal(end_post_recv(&e->server, 1), 0);
	assert_int_equal(end_post_send(&e->client, 2, 8), 0);
	assert_int_equal(end_wait_wc(&e->client).status, IBV_WC_SUCCESS);
	assert_int_equal(end_wait_wc(&e->server).status, IBV_WC_SUCCESS);
}

static void connect_and_fork(struct ends *e, uint64_t expected)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	children = bad_children = 0;
	ends_open(e);
	assert_int_equal(softrnic_listen(e->listener.id, 1), 0);
	forks = true;
	assert_int_equal(softrnic_connect(e->client.id, NULL), 0);
	ends_establish(e);
	while ((state_of(&e->server) != expected || state_of(&e->client) <= SHM_OFFERED) &&
	       clock_now_ns() < until)
		exchange(e);
	assert_string_equal(shm_state_str(state_of(&e->server)), shm_state_str(expected));
	exchange(e);
}

static void expect_good_children(struct ends *e)
{
	forks = false;
	ends_close(e);
	assert_true(children > 0);
	assert_int_equal(bad_children, 0);
}

/* --- tests ---------------------------------------------------------------------------------- */

static void while_ends_meet(void **state)
{
	struct ends e;

	connect_and_fork(&e, SHM_USED);
	expect_good_children(&e);
}

static void while_a_stranger_is_dismissed(void **state)
{
	struct ends e;

	is_guessed = true;
	connect_and_fork(&e, SHM_USED);
	is_guessed = false;
	assert_true(stranger >= 0);
	close(stranger);
	expect_good_children(&e);
}

static void while_rings_are_given_up(void **state)
{
	struct ends e;

	file_mappings = 0;
	memory_fails = true;
	connect_and_fork(&e, SHM_WHY_PEER);
	memory_fails = false;
	expect_good_children(&e);
}

static int socket_of(struct end *e)
{
	struct conn *c = conn_of(e);
	int fd;

	conn_enter(c);
	fd = link_shm_of(c->link)->fd;
	conn_leave(c);
	return fd;
}

static void while_a_socket_that_was_shut_down_is_closed(void **state)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;
	struct ends e;

	connect_and_fork(&e, SHM_USED);
	children = 0;
	assert_int_equal(shutdown(socket_of(&e.client), SHUT_RDWR), 0);
	while ((socket_of(&e.client) >= 0 || socket_of(&e.server) >= 0) && clock_now_ns() < until)
		usleep(100);
	assert_int_equal(socket_of(&e.client), -1);
	assert_int_equal(socket_of(&e.server), -1);
	expect_good_children(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(while_ends_meet),
		cmocka_unit_test(while_a_stranger_is_dismissed),
		cmocka_unit_test(while_rings_are_given_up),
		cmocka_unit_test(while_a_socket_that_was_shut_down_is_closed),
	};

	self = getpid();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
