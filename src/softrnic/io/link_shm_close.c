/* SPDX-License-Identifier: BSD-3-Clause */
#include "softrnic/io/link_shm_close.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ownfd.h"
#include "base/thread.h"

#define CLOSERS_MAX  8u
#define CLOSERS_FEW  2u
#define CLOSER_STACK (64u << 10)
#define SPARES       64u
/* greatest number of unread messages that the calling thread reads; if there are more, a closing
 * thread closes the socket */
#define MESSAGES_MAX  64
#define MESSAGE_BYTES 4096

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* --- threads that close ---------------------------------------------------------------------- */

struct shm_closing {
	struct shm_closing *next;
	int n;
	int fds[];
};

/* The list has no lock, so that a child that is forked during an operation can continue. */
static _Atomic(struct shm_closing *) closing;
/* descriptors + 1 for which there is no memory in the list; 0: free entry */
static atomic_int spare[SPARES];
static atomic_uint closers;

static void closing_push(struct shm_closing *first, struct shm_closing *last)
{
	last->next = atomic_load(&closing);
	while (!atomic_compare_exchange_weak(&closing, &last->next, first))
		;
}

/* Take one entry. Other threads may take other entries at the same time. */
static struct shm_closing *closing_pop(void)
{
	struct shm_closing *first = atomic_exchange(&closing, NULL), *last;

	if (!first || !first->next)
		return first;
	for (last = first->next; last->next; last = last->next)
		;
	closing_push(first->next, last);
	return first;
}

/* Store a descriptor in a free entry. If no entry is free, the descriptor stays open. RLIMIT_NOFILE
 * limits the number of such descriptors. */
static void spare_put(int fd)
{
	for (unsigned i = 0; i < SPARES; i++) {
		int free_slot = 0;

		if (atomic_compare_exchange_strong(&spare[i], &free_slot, fd + 1))
			return;
	}
}

/* Returns a stored descriptor, or -1 if there is none. */
static int spare_take(void)
{
	int taken = 0;

	for (unsigned i = 0; i < SPARES && !taken; i++)
		if (atomic_load(&spare[i]))
			taken = atomic_exchange(&spare[i], 0);
	return taken - 1;
}

static bool closing_has_some(void)
{
	bool some = atomic_load(&closing);

	for (unsigned i = 0; i < SPARES && !some; i++)
		some = atomic_load(&spare[i]);
	return some;
}

static bool closer_enter(void)
{
	unsigned n = atomic_load(&closers);

	while (n < CLOSERS_MAX && !atomic_compare_exchange_weak(&closers, &n, n + 1))
		;
	return n < CLOSERS_MAX;
}

static void *closer_run(void *arg)
{
	struct shm_closing *c;
	int fd;

	do {
		while ((fd = spare_take()) >= 0)
			close(fd);
		while ((c = closing_pop())) {
			for (int i = 0; i < c->n; i++)
				close(c->fds[i]);
			free(c);
		}
		atomic_fetch_sub(&closers, 1);
		/* An entry may have been added after the last check, while this thread still
		 * counted as a closing thread. */
	} while (closing_has_some() && closer_enter());
	return NULL;
}

void shm_close_passed(const int *fds, int n)
{
	struct shm_closing *c = n ? malloc(sizeof(*c) + (size_t)n * sizeof(int)) : NULL;

	if (n == 0)
		return;
	if (c) {
		c->n = n;
		memcpy(c->fds, fds, (size_t)n * sizeof(int));
		closing_push(c, c);
	} else {
		for (int i = 0; i < n; i++)
			spare_put(fds[i]);
	}
	if (closer_enter() && thread_start(NULL, CLOSER_STACK, closer_run, NULL))
		atomic_fetch_sub(&closers, 1);
}

bool shm_closing_is_slow(void)
{
	return atomic_load(&closers) > CLOSERS_FEW;
}

void shm_close_atfork_child(void)
{
	atomic_store(&closing, NULL);
	for (unsigned i = 0; i < SPARES; i++)
		atomic_store(&spare[i], 0);
	atomic_store(&closers, 0);
}

/* --- messages -------------------------------------------------------------------------------- */

void shm_socket_take_none(int fd)
{
	int off = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

static int control_fds(struct msghdr *msg, int fds[SHM_FDS_MAX])
{
	int sum = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = n < (size_t)(SHM_FDS_MAX - sum) ? n : (size_t)(SHM_FDS_MAX - sum);
		memcpy(fds + sum, CMSG_DATA(c), n * sizeof(int));
		sum += (int)n;
	}
	return sum;
}

ssize_t shm_socket_receive(int fd, void *bytes, size_t len, struct shm_passed *passed)
{
	union shm_control control;
	struct iovec iov = {.iov_base = bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	passed->n = got >= 0 ? control_fds(&msg, passed->fds) : 0;
	passed->truncated = got >= 0 && msg.msg_flags & MSG_CTRUNC;
	return got;
}

/*
 * Shut down and close a socket. No message comes after shutdown(). The messages that have arrived
 * are read. If none of them contains a descriptor, the socket is closed here. Otherwise, or if
 * there are too many messages, a closing thread closes the socket.
 */
static void socket_end(int fd)
{
	struct shm_passed passed = {.n = 0};
	char bytes[MESSAGE_BYTES];
	int left = MESSAGES_MAX;
	bool some = true;

	shutdown(fd, SHUT_RDWR);
	while (passed.n == 0 && left-- > 0 && some)
		some = shm_socket_receive(fd, bytes, sizeof(bytes), &passed) > 0;
	if (!some) {
		close(fd);
		return;
	}
	passed.fds[passed.n++] = fd;
	shm_close_passed(passed.fds, passed.n);
}

void shm_socket_close(int fd)
{
	if (ownfd_is_marked(fd))
		socket_end(fd);
}

/* Close a listening socket by a closing thread: callers that are not accepted yet may have sent
 * descriptors, too. */
void shm_socket_close_listener(int fd)
{
	int caller;

	if (!ownfd_is_marked(fd))
		return;
	shutdown(fd, SHUT_RDWR);
	while ((caller = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		socket_end(caller);
	close(fd);
}
