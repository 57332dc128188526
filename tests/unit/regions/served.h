/* SPDX-License-Identifier: BSD-3-Clause */
/* served.h -- a server of librpmafile in a thread of the test, with memory and a file of its own. */
#ifndef UNIT_REGIONS_SERVED_H
#define UNIT_REGIONS_SERVED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <librpmafile.h>

#define SIZE (8u << 20) /* size of each region */

extern unsigned char *memory;
extern char target[64], file_target[64]; /* addresses of the regions "memory" and "file" */

/* To be passed to cmocka_run_group_tests(). */
int served_start(void **state);
int served_stop(void **state);

/* May be called by any thread. */
void must(int rc);
/* Open for writing, with these flags. */
struct rpma_file *open_memory(uint32_t flags);
void fill(unsigned char *buf, size_t len, unsigned seed);

#endif
