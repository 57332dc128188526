/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/log_prefix.h"
#include "base/text.h"
#include "service/forward_log.h"

/* Except for the descriptor, these variables are set before a second thread exists. */
static char journal_path[PATH_MAX];
static char journal_subject[128];
static bool journal_to_syslog;
static int journal_fd = STDERR_FILENO;

static const char *const journal_names[] = {"fatal", "err", "warn", "notice", "info", "debug"};

static void journal_write(enum log_level level, const char *text)
{
	char out[1400], when[64];
	struct timespec ts;
	struct tm tm;
	int n, fd = __atomic_load_n(&journal_fd, __ATOMIC_ACQUIRE);

	clock_gettime(CLOCK_REALTIME, &ts);
	if (!localtime_r(&ts.tv_sec, &tm) || fd == STDERR_FILENO ||
	    !strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S ", &tm))
		when[0] = '\0';
	n = snprintf(out, sizeof(out), "%s%srpmemd[%d]: %s: %s%s\n",
		     fd == STDERR_FILENO ? log_prefix(level) : "", when, (int)getpid(),
		     journal_names[level], journal_subject, text);
	if (n >= (int)sizeof(out)) {
		n = sizeof(out) - 1;
		out[n - 1] = '\n';
	}
	/* Use one write, so that lines of several processes do not mix. */
	if (write(fd, out, (size_t)n) < 0)
		return; /* a failure here cannot be reported anywhere */
}

static void journal_sink(enum log_level level, const char *file, int line, const char *func,
			 const char *text)
{
	static const int priorities[] = {LOG_CRIT,   LOG_ERR,  LOG_WARNING,
					 LOG_NOTICE, LOG_INFO, LOG_DEBUG};
	char printable[1200];

	snprintf(printable, sizeof(printable), "%s", text);
	text_make_printable(printable);
	if (journal_to_syslog)
		syslog(priorities[level], "%s%s", journal_subject, printable);
	else
		journal_write(level, printable);
}

static void journal_set_level(enum log_level level)
{
	log_set(journal_sink, level);
	forward_log(level);
}

void journal_begin(void)
{
	journal_set_level(LOG_LVL_WARNING);
}

static int journal_open_file(const char *path, int *fd, struct error *err)
{
	if (!strcmp(path, "-")) {
		*fd = STDERR_FILENO;
		return 0;
	}
	*fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
	if (*fd < 0)
		return error_set(err, ERROR_LOCAL, errno, "cannot open log file %s: %s", path,
				 strerror(errno));
	return 0;
}

int journal_open(const struct settings *s, struct error *err)
{
	int fd;

	if (!s->use_syslog) {
		if (journal_open_file(s->log_file, &fd, err))
			return ERROR_LOCAL;
		snprintf(journal_path, sizeof(journal_path), "%s", s->log_file);
		__atomic_store_n(&journal_fd, fd, __ATOMIC_RELEASE);
	} else {
		openlog("rpmemd", LOG_PID, LOG_USER);
		journal_to_syslog = true;
	}
	journal_set_level(s->log_level);
	return 0;
}

int journal_reopen(struct error *err)
{
	int fd, rc, old = journal_fd;

	if (journal_to_syslog || old == STDERR_FILENO)
		return 0;
	if (journal_open_file(journal_path, &fd, err))
		return ERROR_LOCAL;
	/* Keep the descriptor's number, because another thread may be writing to it. */
	rc = dup3(fd, old, O_CLOEXEC) < 0
		     ? error_set(err, ERROR_LOCAL, errno, "the log file stays as it was: %s",
				 strerror(errno))
		     : 0;
	close(fd);
	return rc;
}

void journal_set_subject(const char *subject)
{
	snprintf(journal_subject, sizeof(journal_subject), "%s: ", subject);
}
