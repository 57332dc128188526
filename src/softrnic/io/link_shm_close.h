/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_close.h -- closing a Unix socket of a meeting, and descriptors that a peer has passed.
 *
 * The last close of a descriptor may wait: that of a TCP socket that lingers does, for as long as
 * its owner has set. A peer may pass any descriptor, also in messages that are unread when the Unix
 * socket is closed. So threads that do nothing else close such descriptors.
 */
#ifndef IO_LINK_SHM_CLOSE_H
#define IO_LINK_SHM_CLOSE_H

#include <stdbool.h>
#include <sys/socket.h>

#define SHM_FDS_MAX 253 /* of one message: Linux' SCM_MAX_FD */

/* The control part of a message: so much room that the kernel has none to close. */
union shm_control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(SHM_FDS_MAX * sizeof(int))];
};

/* What came with a message. */
struct shm_passed {
	int n;
	bool truncated;           /* there were more */
	int fds[SHM_FDS_MAX + 1]; /* one more: the socket itself, to be closed with them */
};

/* From now on no message with descriptors reaches the socket, nor those that it accepts. A kernel
 * before Linux 6.16 cannot do that, and nothing changes. */
void shm_socket_take_none(int fd);
/*
 * recvmsg(2), which does not wait, with room for all descriptors of a message: without room the
 * kernel closes them in this thread. They belong to the caller.
 */
ssize_t shm_socket_receive(int fd, void *bytes, size_t len, struct shm_passed *passed);
/* These three do not wait for the close of what a peer has passed. The sockets are left alone unless
 * they are still the marked ones (base/ownfd.h). */
void shm_close_passed(const int *fds, int n);
void shm_socket_close(int fd);
void shm_socket_close_listener(int fd);
/* So many threads wait for a close that no further peer should meet this process. */
bool shm_closing_is_slow(void);
/* In a forked child, which has none of these threads. */
void shm_close_atfork_child(void);

#endif
