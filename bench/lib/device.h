/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h -- the bytes that reach the disk of a folder. */
#ifndef BENCH_LIB_DEVICE_H
#define BENCH_LIB_DEVICE_H

#include <stdint.h>

/*
 * Write back all dirty pages of the loop device that the folder is on, and return the bytes written
 * to it so far. Returns 0 for any other folder, because a disk's counter includes the writes of all
 * programs.
 */
uint64_t device_written(const char *folder);

#endif
