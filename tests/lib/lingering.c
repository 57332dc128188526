/* SPDX-License-Identifier: BSD-3-Clause */
#include "lingering.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener = -1, *sinks;
static unsigned n_sinks, max_sinks;
static struct sockaddr_in at;
static struct linger slow = {.l_onoff = 1};

int lingering_begin(unsigned max, int seconds)
{
	socklen_t len = sizeof(at);
	int small = 1;

	at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	slow.l_linger = seconds;
	max_sinks = max;
	sinks = calloc(max, sizeof(*sinks));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (!sinks || bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 64) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		return -errno;
	return 0;
}

static int lingering_socket(void)
{
	static char bytes[65536];
	int small = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (n_sinks == max_sinks || connect(fd, (struct sockaddr *)&at, sizeof(at))) {
		close(fd);
		return -1;
	}
	sinks[n_sinks++] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &slow, sizeof(slow));
	return fd;
}

/* Close a socket that could not be sent to another process. */
static void lingering_close(int fd)
{
	struct linger reset = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
}

int lingering_pass(int to, const void *bytes, size_t len)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control)};
	int fd = lingering_socket(), ret;

	if (fd < 0)
		return -EMFILE;
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	ret = (int)sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (ret < 0)
		ret = -errno;
	if (ret < 0)
		lingering_close(fd);
	else
		close(fd);
	return ret;
}

void lingering_end(void)
{
	while (n_sinks > 0)
		lingering_close(sinks[--n_sinks]);
	close(listener);
	free(sinks);
	sinks = NULL;
}
