/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_close.h -- closing a Unix socket of a meeting, and descriptors that a peer has passed.
 *
 * The last close of a descriptor may wait: a TCP socket that lingers does, for as long as its owner
 * has set, and a peer may pass any, also in messages that are still unread when the Unix socket is
 * closed. So such descriptors are closed by threads that do nothing else.
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

/* No message with descriptors is to reach the socket, nor those that it accepts, from now on; where
 * the kernel cannot do that (before Linux 6.16), nothing changes. */
void shm_socket_take_none(int fd);
/* The descriptors of a message; returns how many. */
int shm_control_fds(struct msghdr *msg, int fds[SHM_FDS_MAX]);
/* None of these waits for the close of what a peer has passed. */
void shm_close_passed(const int *fds, int n);
void shm_socket_close(int fd);
void shm_socket_close_listener(int fd);
/* So many threads wait for a close that no further peer should get the opportunity. */
bool shm_closing_is_slow(void);
/* In a forked child, which has none of these threads. */
void shm_close_atfork_child(void);

#endif
