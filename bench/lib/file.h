/* SPDX-License-Identifier: BSD-3-Clause */
/* file.h -- makes a file without a name in a folder. The file is written once, so that its blocks
 * are allocated. */
#ifndef BENCH_FILE_H
#define BENCH_FILE_H

#include <stddef.h>

int file_open(const char *folder, size_t size);

#endif
