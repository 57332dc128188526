/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h -- counts the bytes that a folder's disk has written. */
#ifndef BENCH_LIB_DEVICE_H
#define BENCH_LIB_DEVICE_H

#include <stdint.h>

/*
 * Write back all dirty pages of the loop device that contains the folder. Returns how many bytes
 * were written to this device so far. Returns 0 if the folder is not on a loop device, because a
 * disk's counter includes the writes of all programs.
 */
uint64_t device_written(const char *folder);

#endif
