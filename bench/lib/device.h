/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h -- what reaches the disk below a folder. */
#ifndef BENCH_LIB_DEVICE_H
#define BENCH_LIB_DEVICE_H

#include <stdint.h>

/*
 * Bytes written so far to the loop device that the folder is on, after all that is dirty there.
 * Returns 0 for any other folder: a disk's counter has the writes of all programs.
 */
uint64_t device_written(const char *folder);

#endif
