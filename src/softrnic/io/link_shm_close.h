/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_close.h -- closes the Unix sockets of meetings, and descriptors that a peer has passed.
 *
 * The last close of a file may wait: for example, the close of a lingering TCP socket waits for the
 * time that its owner has set. A peer may pass descriptors of any file, also in messages that are
 * unread when the Unix socket is closed. So separate threads, the closing threads, close such
 * descriptors.
 */
#ifndef IO_LINK_SHM_CLOSE_H
#define IO_LINK_SHM_CLOSE_H

#include <stdbool.h>
#include <sys/socket.h>

#define SHM_FDS_MAX 253 /* limit for one message: SCM_MAX_FD of Linux */

/* Memory for the control part of a message. It is large enough that the kernel need not close any
 * descriptor. */
union shm_control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(SHM_FDS_MAX * sizeof(int))];
};

/* The descriptors that came with a message. */
struct shm_passed {
	int n;
	bool truncated; /* the message contained more descriptors than `fds` can hold */
	/* one entry more than the limit: the socket itself, which is closed together with them */
	int fds[SHM_FDS_MAX + 1];
};

/* After this call neither this socket nor the sockets that it accepts receive descriptors. Kernels
 * before Linux 6.16 do not support this, and then the call does nothing. */
void shm_socket_take_none(int fd);
/* Calls recvmsg(2) without waiting, and with enough memory for all descriptors of a message:
 * otherwise the kernel would close the rest of them in this thread. The descriptors belong to the
 * caller. */
ssize_t shm_socket_receive(int fd, void *bytes, size_t len, struct shm_passed *passed);
/* These three functions do not wait for the close of passed descriptors. They close a socket only
 * if its number still belongs to the marked file (base/ownfd.h). */
void shm_close_passed(const int *fds, int n);
void shm_socket_close(int fd);
void shm_socket_close_listener(int fd);
/* Are too many threads waiting for a close? This process should then accept no further meeting. */
bool shm_closing_is_slow(void);
/* Called in a forked child, where the closing threads do not exist. */
void shm_close_atfork_child(void);

#endif
