/* SPDX-License-Identifier: BSD-3-Clause */
/* image.h -- makes a number that identifies the program that this process runs, for the daemon. */
#ifndef MIRROR_IMAGE_H
#define MIRROR_IMAGE_H

#include <stdint.h>

/* Returns the number: the same number for all users in the process, another number after execve(2);
 * 0: unknown. */
uint64_t image_number(void);

#endif
