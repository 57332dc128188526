/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

static int log_fd = -1;

/* The library's levels for PMDK's numbers: nothing, errors, warnings, steps, everything. */
static const enum log_level log_levels[] = {LOG_LVL_OFF, LOG_LVL_ERROR, LOG_LVL_WARNING,
					    LOG_LVL_INFO, LOG_LVL_DEBUG};
static const char *const log_names[] = {"fatal", "1", "2", "3", "3", "4"};

static void log_write_line(enum log_level level, const char *file, int line, const char *func,
			   const char *text)
{
	char out[1400];
	const char *slash = strrchr(file, '/');
	int n = snprintf(out, sizeof(out), "<librpmem>: <%s> [%s:%d %s] %s\n", log_names[level],
			 slash ? slash + 1 : file, line, func, text);

	if (n >= (int)sizeof(out)) {
		n = sizeof(out) - 1;
		out[n - 1] = '\n';
	}
	if (write(log_fd, out, (size_t)n) < 0)
		return; /* a failure here cannot be reported anywhere */
}

/* Open the log. If the name ends in '-', the process's number is appended. */
static int log_open_file(const char *name)
{
	char path[4096];
	size_t len = strlen(name);

	if (len && name[len - 1] == '-')
		snprintf(path, sizeof(path), "%s%d", name, (int)getpid());
	else
		snprintf(path, sizeof(path), "%s", name);
	return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

void log_open(void)
{
	const char *level = getenv("RPMEM_LOG_LEVEL"), *file = getenv("RPMEM_LOG_FILE");
	int n = level && level[0] && !level[1] ? level[0] - '0' : 0;

	if (n <= 0 || n > 4) {
		log_set(NULL, LOG_LVL_OFF);
		return;
	}
	if (log_fd > STDERR_FILENO)
		close(log_fd);
	log_fd = file && *file ? log_open_file(file) : STDERR_FILENO;
	if (log_fd < 0)
		log_fd = STDERR_FILENO;
	log_set(log_write_line, log_levels[n]);
}
