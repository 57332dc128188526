/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures waking a process that sleeps, by a futex or by a byte on a Unix socket: the lower bound
 * for the first message to a sleeping peer. The answer comes through a cache line, on which the
 * caller spins.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/result.h"
#include "limit_impl.h"

struct limit_wake {
	_Alignas(64) _Atomic uint32_t there;
	_Alignas(64) _Atomic uint32_t back;
	_Alignas(64) _Atomic uint32_t end;
	int sock[2];   /* the caller's end and the sleeper's end */
	bool by_futex; /* true: wake by the futex; false: by the socket */
};

static void limit_wake_up(struct limit_wake *w)
{
	if (w->by_futex)
		syscall(SYS_futex, &w->there, FUTEX_WAKE, 1, NULL, NULL, 0);
	else if (send(w->sock[0], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
		die_errno("wake up");
}

static void limit_wake_sleep(struct limit_wake *w, int epfd, uint32_t turn)
{
	struct epoll_event event;
	char bytes[16];

	if (w->by_futex)
		syscall(SYS_futex, &w->there, FUTEX_WAIT, turn, NULL, NULL, 0);
	else if (epoll_wait(epfd, &event, 1, -1) > 0 &&
		 recv(w->sock[1], bytes, sizeof(bytes), MSG_DONTWAIT) < 0)
		return; /* this wake-up belongs to the previous round */
}

static int limit_wake_epoll(const struct limit_wake *w)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, w->sock[1], &event))
		die_errno("epoll");
	return epfd;
}

static void limit_wake_target(const struct bench_case *c, int fd, void *arg)
{
	struct limit_wake *w = arg;
	uint32_t turn = 0, now;
	int epfd = limit_wake_epoll(w);

	while (!atomic_load(&w->end)) {
		limit_wake_sleep(w, epfd, turn);
		now = atomic_load_explicit(&w->there, memory_order_acquire);
		if (now == turn)
			continue;
		turn = now;
		atomic_store_explicit(&w->back, turn, memory_order_release);
	}
}

/* --- find out whether the thread sleeps ----------------------------------------------------- */

static int limit_wake_state_open(const struct ends *e)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)e->target);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die_errno(path);
	return fd;
}

static bool limit_wake_sleeps(int fd)
{
	char text[64]; /* the text "pid (name) state" */
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
	const char *end;

	if (len <= 0)
		die_errno("state of the target");
	text[len] = 0;
	end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] == 'S';
}

/*
 * Begin each round only when the other end sleeps. Otherwise the other end might find the round
 * without a wake-up. The time until the other end sleeps is not counted. Returns the sum of the
 * counted times.
 */
static uint64_t limit_wake_for(struct limit_wake *w, int state, uint32_t *turn, uint64_t ns,
			       struct samples *s)
{
	uint64_t begin = clock_now_ns(), then, now = begin, sum = 0;

	samples_clear(s);
	while (now - begin < ns) {
		while (!limit_wake_sleeps(state))
			;
		then = clock_now_ns();
		atomic_store_explicit(&w->there, ++*turn, memory_order_release);
		limit_wake_up(w);
		while (atomic_load_explicit(&w->back, memory_order_acquire) != *turn)
			;
		now = clock_now_ns();
		samples_add(s, now - then);
		sum += now - then;
	}
	return sum;
}

/* Check that few wake-ups came between the announcement of a sleep and the sleep itself. */
static void limit_wake_check(uint32_t turns)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	if (usage.ru_nvcsw < (long)turns / 4 * 3)
		die("the target slept %ld times and was woken %u times", usage.ru_nvcsw, turns);
}

static void limit_wake(const struct bench_case *c, bool by_futex)
{
	struct samples *s = samples_new();
	struct limit_wake *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct result r = {0};
	uint32_t turn = 0;
	struct ends e;
	int state;

	if (w == MAP_FAILED)
		die_errno("shared memory");
	w->by_futex = by_futex;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, w->sock))
		die_errno("socketpair");
	ends_start(&e, c, limit_wake_target, w);
	state = limit_wake_state_open(&e);
	limit_wake_for(w, state, &turn, case_warmup_ns(c), s);
	r.ns = limit_wake_for(w, state, &turn, case_ns(c), s);
	r.count = s->total;
	atomic_store(&w->end, 1);
	/* End the sleeper, which may be sleeping now or may be about to sleep. */
	atomic_fetch_add(&w->there, 1);
	limit_wake_up(w);
	close(state);
	ends_finish(&e);
	limit_wake_check(turn);
	result_print(c, &r, s);
	samples_delete(s);
}

void limit_wake_futex(const struct bench_case *c)
{
	limit_wake(c, true);
}

void limit_wake_socket(const struct bench_case *c)
{
	limit_wake(c, false);
}
