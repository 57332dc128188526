/* SPDX-License-Identifier: BSD-3-Clause */
/* clock_jumps.h -- the number of times that processes have read a jumping time of day
 * (clock_preload.c). */
#ifndef MIRROR_CLOCK_JUMPS_H
#define MIRROR_CLOCK_JUMPS_H

#include <stdint.h>

struct clock_jumps {
	uint64_t daemons, applications;
};

#endif
