/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures a round trip between two programs that watch their memory, over one TCP connection: the
 * lower bound of ib_write_lat with Acks.
 *
 * Each program sends a message, polls the socket until the answer has arrived, and then spins on
 * its memory until the other end's message has arrived. No call of the program receives that
 * message, so a second thread receives it: it sleeps until bytes come, stores the message, and
 * answers it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/die.h"
#include "lib/ends.h"
#include "lib/result.h"
#include "limit_impl.h"

enum { WATCH_MESSAGE = 1, WATCH_ANSWER = 2 }; /* the first byte of each message */

struct limit_watch {
	const struct bench_case *c;
	int sock;
	char *message, *answer; /* the bytes that this end sends */
	pthread_t receiver;

	pthread_mutex_t lock; /* guards received bytes that are not processed */
	char *in;
	size_t room, have;

	_Alignas(64) _Atomic uint64_t messages; /* the memory that the program watches */
	_Alignas(64) _Atomic uint64_t answers;
	_Alignas(64) atomic_bool ended;
};

static void watch_process_all(struct limit_watch *w)
{
	size_t at = 0, len;

	for (; at < w->have; at += len) {
		bool is_message = w->in[at] == WATCH_MESSAGE;

		len = is_message ? w->c->size : w->c->back;
		if (len > w->have - at)
			break;
		atomic_fetch_add(is_message ? &w->messages : &w->answers, 1);
		if (is_message)
			limit_socket_send(w->sock, w->answer, w->c->back);
	}
	w->have -= at;
	memmove(w->in, w->in + at, w->have);
}

/* Call recv() once. The caller holds the lock. */
static void watch_receive(struct limit_watch *w)
{
	ssize_t n = recv(w->sock, w->in + w->have, w->room - w->have, MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNRESET)
		die_errno("recv");
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		atomic_store(&w->ended, true);
	if (n <= 0)
		return;
	w->have += (size_t)n;
	watch_process_all(w);
}

static void *watch_receiver(void *arg)
{
	struct limit_watch *w = arg;
	struct epoll_event event = {.events = EPOLLIN};
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	if (epfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, w->sock, &event))
		die_errno("epoll");
	while (!atomic_load(&w->ended)) {
		if (epoll_wait(epfd, &event, 1, -1) < 0 && errno != EINTR)
			die_errno("epoll_wait");
		pthread_mutex_lock(&w->lock);
		watch_receive(w);
		pthread_mutex_unlock(&w->lock);
	}
	close(epfd);
	return NULL;
}

/* Poll the socket until the answer to the last message has arrived. */
static void watch_await_answer(struct limit_watch *w, uint64_t answers)
{
	while (atomic_load(&w->answers) < answers && !atomic_load(&w->ended))
		if (!pthread_mutex_trylock(&w->lock)) {
			watch_receive(w);
			pthread_mutex_unlock(&w->lock);
		}
}

static void watch_memory(struct limit_watch *w, uint64_t messages)
{
	while (atomic_load_explicit(&w->messages, memory_order_acquire) < messages &&
	       !atomic_load_explicit(&w->ended, memory_order_relaxed))
		;
}

static void watch_send(struct limit_watch *w, uint64_t n)
{
	limit_socket_send(w->sock, w->message, w->c->size);
	watch_await_answer(w, n);
}

static char *watch_buffer(size_t len, char kind)
{
	char *buf = limit_buffer(len);

	buf[0] = kind;
	return buf;
}

static void watch_start(struct limit_watch *w, const struct bench_case *c, int sock)
{
	*w = (struct limit_watch){.c = c, .sock = sock, .room = 2 * (c->size + c->back)};
	pthread_mutex_init(&w->lock, NULL);
	w->in = limit_buffer(w->room);
	w->message = watch_buffer(c->size, WATCH_MESSAGE);
	w->answer = watch_buffer(c->back, WATCH_ANSWER);
	errno = pthread_create(&w->receiver, NULL, watch_receiver, w);
	if (errno)
		die_errno("thread");
}

static void watch_end(struct limit_watch *w)
{
	shutdown(w->sock, SHUT_WR);
	pthread_join(w->receiver, NULL);
}

static void limit_watch_target(const struct bench_case *c, int fd, void *arg)
{
	struct limit_watch w;

	watch_start(&w, c, limit_socket_accept(c, fd));
	for (uint64_t n = 1;; n++) {
		watch_memory(&w, n);
		if (atomic_load(&w.ended))
			break;
		watch_send(&w, n);
	}
	watch_end(&w);
}

static uint64_t limit_watch_for(struct limit_watch *w, uint64_t *n, uint64_t ns, struct samples *s)
{
	uint64_t begin = clock_now_ns(), then = begin, now = begin;

	samples_clear(s);
	while (now - begin < ns) {
		watch_send(w, ++*n);
		watch_memory(w, *n);
		now = clock_now_ns();
		samples_add(s, now - then);
		then = now;
	}
	return now - begin;
}

void limit_watch(const struct bench_case *c)
{
	struct samples *s = samples_new();
	struct result r = {0};
	struct limit_watch w;
	uint64_t n = 0;
	struct ends e;

	ends_start(&e, c, limit_watch_target, NULL);
	watch_start(&w, c, limit_socket_connect(c, e.fd));
	limit_watch_for(&w, &n, case_warmup_ns(c), s);
	r.ns = limit_watch_for(&w, &n, case_ns(c), s);
	r.count = s->total;
	watch_end(&w);
	ends_finish(&e);
	result_print(c, &r, s);
	samples_delete(s);
}
