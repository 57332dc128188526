/* SPDX-License-Identifier: BSD-3-Clause */
/* image.h -- the number of the program that this process runs, for the daemon. */
#ifndef MIRROR_IMAGE_H
#define MIRROR_IMAGE_H

#include <stdint.h>

/* The same for all users of it in the process, another one after execve(2); 0: not known. */
uint64_t image_number(void);

#endif
