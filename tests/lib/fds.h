/* SPDX-License-Identifier: BSD-3-Clause */
/* fds.h -- count the open descriptors of this process, for tests that compare the count. */
#ifndef TESTLIB_FDS_H
#define TESTLIB_FDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

/* The count includes the descriptor of the folder that is read, and the entries "." and "..". */
static inline int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

#endif
