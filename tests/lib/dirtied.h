/* SPDX-License-Identifier: BSD-3-Clause */
/* dirtied.h -- count the bytes that a process makes dirty. Include this file after cmocka.h. */
#ifndef LIB_DIRTIED_H
#define LIB_DIRTIED_H

#include <stdio.h>

/* Returns the number of bytes that this process has made dirty so far. The kernel counts whole
 * folios. */
static inline unsigned long long bytes_dirtied(void)
{
	FILE *io = fopen("/proc/self/io", "re");
	unsigned long long bytes = 0;
	char line[128];

	assert_non_null(io);
	while (fgets(line, sizeof(line), io))
		sscanf(line, "write_bytes: %llu", &bytes);
	fclose(io);
	return bytes;
}

#endif
