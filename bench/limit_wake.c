/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waking a process that sleeps, by a futex or by a byte on a Unix socket: what the first message to
 * a peer that does not look costs at least. The answer is a cache line, which the caller looks at.
 */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
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
	int sock[2];   /* the caller's, the sleeper's */
	bool by_futex; /* else by the socket */
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
		return; /* of the time before */
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

static uint64_t limit_wake_for(struct limit_wake *w, uint32_t *turn, uint64_t ns, struct samples *s)
{
	uint64_t begin = clock_now_ns(), then = begin, now = begin;

	samples_clear(s);
	while (now - begin < ns) {
		atomic_store_explicit(&w->there, ++*turn, memory_order_release);
		limit_wake_up(w);
		while (atomic_load_explicit(&w->back, memory_order_acquire) != *turn)
			;
		now = clock_now_ns();
		samples_add(s, now - then);
		then = now;
	}
	return now - begin;
}

static void limit_wake(const struct bench_case *c, bool by_futex)
{
	struct samples *s = samples_new();
	struct limit_wake *w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct result r = {0};
	uint32_t turn = 0;
	struct ends e;

	if (w == MAP_FAILED)
		die_errno("shared memory");
	w->by_futex = by_futex;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, w->sock))
		die_errno("socketpair");
	ends_start(&e, c, limit_wake_target, w);
	limit_wake_for(w, &turn, case_warmup_ns(c), s);
	r.ns = limit_wake_for(w, &turn, case_ns(c), s);
	r.count = s->total;
	atomic_store(&w->end, 1);
	atomic_fetch_add(&w->there, 1); /* it sleeps no more, or does not begin to */
	limit_wake_up(w);
	ends_finish(&e);
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
