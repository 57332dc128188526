/* SPDX-License-Identifier: BSD-3-Clause */
/* devdax.h -- reads facts about a device DAX (/dev/daxX.Y) from the kernel's sysfs. */
#ifndef POOLSET_DEVDAX_H
#define POOLSET_DEVDAX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct devdax {
	uint64_t size;
	uint64_t align; /* mappings begin and end at multiples of align */
};

/* The path at which sysfs is mounted; tests set another path. */
extern const char *devdax_sysfs;

/* Returns false if the device is not a device DAX, or cannot be examined. */
bool devdax_probe(dev_t device, struct devdax *dax);

#endif
