/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log_syslog.c -- writes to syslog under librpma's name, without changing the name that the program
 * uses.
 *
 * The name and facility that openlog(3) sets hold for the whole process, so a library that calls it
 * renames the application's messages. So this file itself sends the datagram of RFC 3164. If
 * /dev/log takes no datagrams, this file uses libc's syslog(3), under the application's ident.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "rpma/log_default.h"

enum { DATAGRAM_MAX = 1536 };

static const int SEVERITY[] = {
	[RPMA_LOG_LEVEL_FATAL] = LOG_CRIT,      [RPMA_LOG_LEVEL_ERROR] = LOG_ERR,
	[RPMA_LOG_LEVEL_WARNING] = LOG_WARNING, [RPMA_LOG_LEVEL_NOTICE] = LOG_NOTICE,
	[RPMA_LOG_LEVEL_INFO] = LOG_INFO,       [RPMA_LOG_LEVEL_DEBUG] = LOG_DEBUG,
};

/*
 * Open a new socket for each message, so that no descriptor is inherited by a forked process or
 * closed by closefrom(2).
 */
static bool log_syslog_send(const char *buf, size_t len)
{
	const struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool sent;

	if (fd < 0)
		return false;
	sent = !connect(fd, (const struct sockaddr *)&to, sizeof(to));
	if (sent)
		/*
		 * Drop the message if the logger is too slow: a data path must not wait for the
		 * logger.
		 */
		(void)!send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
	return sent;
}

void log_syslog(enum rpma_log_level level, const char *text)
{
	int priority = LOG_LOCAL7 | SEVERITY[level];
	int text_len = (int)strcspn(text, "\n");
	char buf[DATAGRAM_MAX];
	time_t now = time(NULL);
	struct tm tm;
	int len;

	if (!localtime_r(&now, &tm))
		memset(&tm, 0, sizeof(tm));
	len = snprintf(buf, sizeof(buf), "<%d>%s %2d %02d:%02d:%02d rpma[%ld]: %.*s", priority,
		       log_month[tm.tm_mon], tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		       (long)getpid(), text_len, text);
	if (len >= (int)sizeof(buf))
		len = sizeof(buf) - 1;
	if (!log_syslog_send(buf, (size_t)len))
		syslog(priority, "%.*s", text_len, text);
}
