/* SPDX-License-Identifier: BSD-3-Clause */
/* clock_jumps.h -- how often processes have read a time of day that jumps (clock_preload.c). */
#ifndef MIRROR_CLOCK_JUMPS_H
#define MIRROR_CLOCK_JUMPS_H

#include <stdint.h>

struct clock_jumps {
	uint64_t daemons, applications;
};

#endif
