/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * While a connection moves from TCP to rings, each system call and each allocation fails in turn,
 * at either end. Then both ends stay on TCP, or both move to rings. The connection goes on, and no
 * resource leaks.
 */
#include "ends.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/shm_state.h"
#include "softrnic/io/conn_parts.h"
#include "softrnic/io/link_shm.h"
#include "softrnic/verbs/id.h"

#define LIMIT_NS (20 * NSEC_PER_SEC)

static struct ends ends;

/* --- calls that fail ------------------------------------------------------------------------ */

#define CALLS(X)                                                                                   \
	X(SOCKET, EMFILE)                                                                          \
	X(BIND, EADDRINUSE)                                                                        \
	X(LISTEN, EADDRINUSE)                                                                      \
	X(EPOLL_ADD, ENOMEM)                                                                       \
	X(CONNECT, ECONNREFUSED)                                                                   \
	X(ACCEPT, EMFILE)                                                                          \
	X(CREDENTIALS, ENOTCONN)                                                                   \
	X(SEND, EPIPE)                                                                             \
	X(RECEIVE, ECONNRESET)                                                                     \
	X(MEMFD, EMFILE)                                                                           \
	X(TRUNCATE, ENOSPC)                                                                        \
	X(FCNTL, EPERM)                                                                            \
	X(STAT, EIO)                                                                               \
	X(STATFS, EIO)                                                                             \
	X(MMAP, ENOMEM)                                                                            \
	X(MADVISE, ENOMEM)                                                                         \
	X(CALLOC, ENOMEM)

enum call {
#define X(name, err) CALL_##name,
	CALLS(X)
#undef X
		CALL_COUNT
};

static const struct {
	const char *name;
	int err;
} calls[] = {
#define X(name, err) {#name, err},
	CALLS(X)
#undef X
		[CALL_COUNT] = {"no call", 0},
};

static atomic_int failing = -1; /* an enum call; -1: no call fails */
static atomic_int left;         /* calls until one fails */
static atomic_bool failed;

static bool must_fail(enum call call)
{
	if (failing != (int)call || atomic_fetch_sub(&left, 1) != 1)
		return false;
	failed = true;
	errno = calls[call].err;
	return true;
}

static bool is_unix(int fd)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	return !getsockname(fd, (struct sockaddr *)&name, &len) && name.ss_family == AF_UNIX;
}

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol)
{
	return must_fail(CALL_SOCKET) ? -1 : __real_socket(domain, type, protocol);
}

int __real_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return must_fail(CALL_BIND) ? -1 : __real_bind(fd, addr, len);
}

int __real_listen(int fd, int n);
int __wrap_listen(int fd, int n);
int __wrap_listen(int fd, int n)
{
	return must_fail(CALL_LISTEN) ? -1 : __real_listen(fd, n);
}

int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	if (op == EPOLL_CTL_ADD && must_fail(CALL_EPOLL_ADD))
		return -1;
	return __real_epoll_ctl(epfd, op, fd, ev);
}

int __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return must_fail(CALL_CONNECT) ? -1 : __real_connect(fd, addr, len);
}

/* Like the kernel, check for EAGAIN before the failure with EMFILE. */
int __real_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int got = __real_accept4(fd, addr, len, flags);

	if (got < 0 || !must_fail(CALL_ACCEPT))
		return got;
	close(got);
	errno = calls[CALL_ACCEPT].err;
	return -1;
}

int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	if (name == SO_PEERCRED && must_fail(CALL_CREDENTIALS))
		return -1;
	return __real_getsockopt(fd, level, name, value, len);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (failing == CALL_SEND && is_unix(fd) && must_fail(CALL_SEND))
		return -1;
	return __real_sendmsg(fd, msg, flags);
}

ssize_t __real_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	if (failing == CALL_RECEIVE && is_unix(fd) && must_fail(CALL_RECEIVE))
		return -1;
	return __real_recvmsg(fd, msg, flags);
}

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags)
{
	return must_fail(CALL_MEMFD) ? -1 : __real_memfd_create(name, flags);
}

int __real_ftruncate(int fd, off_t len);
int __wrap_ftruncate(int fd, off_t len);
int __wrap_ftruncate(int fd, off_t len)
{
	return must_fail(CALL_TRUNCATE) ? -1 : __real_ftruncate(fd, len);
}

int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	/* Reading a file's mark (base/ownfd.h) fails only if the descriptor is not open. */
	return cmd != F_GETSIG && must_fail(CALL_FCNTL) ? -1 : __real_fcntl(fd, cmd, arg);
}

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st)
{
	return must_fail(CALL_STAT) ? -1 : __real_fstat(fd, st);
}

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs)
{
	return must_fail(CALL_STATFS) ? -1 : __real_fstatfs(fd, fs);
}

void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t at)
{
	return must_fail(CALL_MMAP) ? MAP_FAILED : __real_mmap(addr, len, prot, flags, fd, at);
}

int __real_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice);
int __wrap_madvise(void *addr, size_t len, int advice)
{
	return must_fail(CALL_MADVISE) ? -1 : __real_madvise(addr, len, advice);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return must_fail(CALL_CALLOC) ? NULL : __real_calloc(n, size);
}

/* --- a connection that moves to rings ------------------------------------------------------- */

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

static bool has_rings(struct end *e)
{
	struct conn *c = conn_of(e);
	bool shm;

	conn_enter(c);
	shm = link_is_shm(c->link);
	conn_leave(c);
	return shm;
}

static void exchange(void)
{
	assert_int_equal(end_post_recv(&ends.server, 1), 0);
	assert_int_equal(end_post_send(&ends.client, 2, 8), 0);
	assert_int_equal(end_wait_wc(&ends.client).status, IBV_WC_SUCCESS);
	assert_int_equal(end_wait_wc(&ends.server).status, IBV_WC_SUCCESS);
}

/* Count sockets, memory files, and mappings of memory files. */
static int count_links(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char target[64] = "";

		if (readlinkat(dirfd(d), e->d_name, target, sizeof(target) - 1) > 0)
			n += !strncmp(target, "socket:", 7) || !strncmp(target, "/memfd:", 7);
	}
	closedir(d);
	return n;
}

static int count_held(void)
{
	return count_links("/proc/self/fd") + count_links("/proc/self/map_files");
}

/* A connection may keep descriptors for a moment after its end, so wait. */
static void expect_held(int before, const char *what, int nth)
{
	uint64_t until = clock_now_ns() + LIMIT_NS;

	while (count_held() > before && clock_now_ns() < until)
		usleep(1000);
	if (count_held() != before)
		fail_msg("%s %d failed: %d descriptors or mappings are left", what, nth,
			 count_held() - before);
}

/* Wait until both ends have moved to rings, or both have a reason to stay on TCP. */
static void settle(const char *what, int nth)
{
	uint64_t until = clock_now_ns() + LIMIT_NS, s, c;

	do {
		exchange();
		s = state_of(&ends.server);
		c = state_of(&ends.client);
	} while ((s <= SHM_OFFERED || c <= SHM_OFFERED || (s == SHM_USED) != (c == SHM_USED)) &&
		 clock_now_ns() < until);
	if (s <= SHM_OFFERED || c <= SHM_OFFERED || has_rings(&ends.server) != (s == SHM_USED) ||
	    has_rings(&ends.client) != (c == SHM_USED))
		fail_msg("%s %d failed: server: %s, client: %s", what, nth, shm_state_str(s),
			 shm_state_str(c));
}

/* Make the nth call fail. Returns false if the function was called fewer times. *state gets the
 * server's state, if known. */
static bool fail_nth(enum call call, int nth, uint64_t *state)
{
	int before = count_held();

	failed = false;
	ends_open(&ends);
	assert_int_equal(softrnic_listen(ends.listener.id, 1), 0);
	assert_int_equal(softrnic_connect(ends.client.id, NULL), 0);
	ends_establish(&ends);
	left = nth;
	failing = (int)call;
	settle(calls[call].name, nth);
	failing = -1;
	*state = state_of(&ends.server);
	for (int i = 0; i < 10; i++)
		exchange();
	ends_close(&ends);
	expect_held(before, calls[call].name, nth);
	return failed;
}

static void every_call_on_the_way_may_fail(void **state)
{
	uint64_t why;

	for (enum call call = 0; call < CALL_COUNT; call++) {
		int nth = 1;

		while (fail_nth(call, nth, &why))
			assert_true(++nth < 20);
		if (nth == 1)
			fail_msg("%s is never called", calls[call].name);
	}
}

/*
 * The library calls madvise() to populate the pages, so that a lack of memory is an error of this
 * call. Otherwise a later store would raise SIGBUS.
 */
static void memory_that_cannot_be_populated_is_not_used(void **state)
{
	uint64_t why;

	assert_true(fail_nth(CALL_MADVISE, 2, &why));
	assert_int_equal(why, SHM_WHY_MEMORY);
}

/* Before the tests, make the objects that every process keeps. */
static int setup(void **state)
{
	uint64_t why;

	fail_nth(CALL_COUNT, 1, &why);
	assert_int_equal(why, SHM_USED);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_on_the_way_may_fail),
		cmocka_unit_test(memory_that_cannot_be_populated_is_not_used),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
