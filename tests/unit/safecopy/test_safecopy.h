/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_SAFECOPY_H
#define TEST_SAFECOPY_H

#include <stddef.h>

/* Map `pages` pages of a file that has only `backed` pages. */
unsigned char *map_truncated(size_t pages, size_t backed);

int run_chain_tests(void);

#endif
