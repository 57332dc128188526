/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/manager.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

#define MANAGER_TEXT 512

static struct sockaddr_un manager_at = {.sun_family = AF_UNIX};
static socklen_t manager_at_len; /* 0: there is no service manager */

void manager_begin(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	manager_at_len = 0;
	if (!len)
		return;
	if ((path[0] == '/' || path[0] == '@') && len < sizeof(manager_at.sun_path)) {
		memcpy(manager_at.sun_path, path, len + 1);
		/* '@' stands for the zero byte that begins an abstract address. Its length, not a
		 * NUL, ends such an address. */
		if (path[0] == '@')
			manager_at.sun_path[0] = '\0';
		manager_at_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
					     (path[0] == '/'));
	} else {
		LOG_WARNING("NOTIFY_SOCKET=%s is no path and no abstract address: the service "
			    "manager gets no reports",
			    path);
	}
	unsetenv("NOTIFY_SOCKET");
}

/*
 * flags 0: wait while the manager's queue is full, because without READY the manager considers the
 * start failed. MSG_DONTWAIT: drop the text if the queue is full, so that a slow manager does not
 * delay peers.
 */
static void manager_send(const char *text, int flags)
{
	int fd;

	if (!manager_at_len)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, text, strlen(text), MSG_NOSIGNAL | flags,
			     (const struct sockaddr *)&manager_at, manager_at_len) < 0)
		LOG_WARNING_LIMITED("'%.40s' does not reach the service manager: %s", text,
				    strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* Remove newlines from the text, because a newline ends a line of the message. */
static void manager_send_status(const char *before, int flags, const char *fmt, va_list ap)
{
	char status[MANAGER_TEXT], text[MANAGER_TEXT + 64];

	vsnprintf(status, sizeof(status), fmt, ap);
	text_make_printable(status);
	snprintf(text, sizeof(text), "%sSTATUS=%s", before, status);
	manager_send(text, flags);
}

void manager_ready(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	manager_send_status("READY=1\n", 0, fmt, ap);
	va_end(ap);
}

void manager_status(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	manager_send_status("", MSG_DONTWAIT, fmt, ap);
	va_end(ap);
}

void manager_reloading(void)
{
	char text[64];

	/* For Type=notify-reload, systemd compares this time with the time at which it sent its
	 * signal. */
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)(clock_now_ns() / 1000));
	manager_send(text, 0);
}

void manager_reloaded(void)
{
	manager_send("READY=1", 0);
}

void manager_stopping(void)
{
	manager_send("STOPPING=1", 0);
}
