/* SPDX-License-Identifier: BSD-3-Clause */
/* fds.h -- the number of this process's descriptors, for tests that compare it. */
#ifndef TESTLIB_FDS_H
#define TESTLIB_FDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>

/* Counts the descriptor of the folder itself and its entries "." and "..", too. */
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
