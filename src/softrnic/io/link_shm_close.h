/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_close.h -- closing a Unix socket of a meeting, and descriptors that a peer has passed.
 *
 * The last close of a descriptor may wait: for example, a lingering TCP socket waits for the time
 * that its owner has set. A peer may pass any descriptor, also in messages that are unread when the
 * Unix socket is closed. So separate threads close such descriptors.
 */
#ifndef IO_LINK_SHM_CLOSE_H
#define IO_LINK_SHM_CLOSE_H

#include <stdbool.h>
#include <sys/socket.h>

#define SHM_FDS_MAX 253 /* limit for one message: Linux' SCM_MAX_FD */

/* The control part of a message, large enough that the kernel need not close any descriptor. */
union shm_control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(SHM_FDS_MAX * sizeof(int))];
};

/* The descriptors that came with a message. */
struct shm_passed {
	int n;
	bool truncated;           /* there were more descriptors */
	int fds[SHM_FDS_MAX + 1]; /* one more: the socket itself, which is closed with them */
};

/* From now on neither this socket nor the sockets that it accepts receive descriptors. A kernel
 * before Linux 6.16 does not support this, and then nothing changes. */
void shm_socket_take_none(int fd);
/* As recvmsg(2), without waiting, and with room for all descriptors of a message: without room the
 * kernel closes them in this thread. The descriptors belong to the caller. */
ssize_t shm_socket_receive(int fd, void *bytes, size_t len, struct shm_passed *passed);
/* These three functions do not wait for the close of passed descriptors. They close a socket only
 * if it is still the marked one (base/ownfd.h). */
void shm_close_passed(const int *fds, int n);
void shm_socket_close(int fd);
void shm_socket_close_listener(int fd);
/* Too many threads wait for a close, so this process should accept no further meeting. */
bool shm_closing_is_slow(void);
/* In a forked child, which has none of these threads. */
void shm_close_atfork_child(void);

#endif
