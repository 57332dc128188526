/* SPDX-License-Identifier: BSD-3-Clause */
/* served.h -- a server of librpmafile in a thread of the test, with two regions: memory and a
 * file. */
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

/* Set-up and tear-down for cmocka_run_group_tests(). */
int served_start(void **state);
int served_stop(void **state);

/* Any thread may call this. */
void must(int rc);
/* Open the region "memory" for writing, with these flags. */
struct rpma_file *open_memory(uint32_t flags);
void fill(unsigned char *buf, size_t len, unsigned seed);

#endif
