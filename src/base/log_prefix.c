/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log_prefix.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* JOURNAL_STREAM has the device and the inode in decimal, separated by a colon
 * (systemd.exec(5)). */
static bool prefix_is_wanted(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;
	char end;

	return stream && sscanf(stream, "%llu:%llu%c", &device, &inode, &end) == 2 &&
	       !fstat(STDERR_FILENO, &st) && st.st_dev == device && st.st_ino == inode;
}

const char *log_prefix(enum log_level level)
{
	static const char *const prefixes[] = {"<2>", "<3>", "<4>", "<5>", "<6>", "<7>"};

	return level >= LOG_LVL_FATAL && level <= LOG_LVL_DEBUG && prefix_is_wanted()
		       ? prefixes[level]
		       : "";
}
