/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h -- chooses the device of the lanes: an RDMA device if one reaches the target; otherwise
 * the software RNIC, if RPMEM_ENABLE_SOCKETS allows it.
 */
#ifndef RPMEM_DEVICE_H
#define RPMEM_DEVICE_H

#include <librpma.h>
#include <stdbool.h>

#include "rpmem/target.h"

#define DEVICE_ADDRESSES 8

struct device {
	bool is_softrnic;
	/* ssh must use IPv4, like the original library with its provider "sockets" */
	bool ipv4;
	bool unresolved; /* this machine cannot resolve the name; ssh may still resolve it */
};

/* Choose the kind of device. Returns 0 or an errno. */
int device_choose(const struct target *target, struct device *device);
/* Make a peer on the device that reaches addr. */
int device_open(const struct device *device, const char *addr, struct rpma_peer **peer);

/*
 * Register memory. The call takes a lock, because these calls of librpma are not thread-safe.
 * Returns librpma's result.
 */
int device_register(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		    struct rpma_mr_local **mr);
void device_deregister(struct rpma_mr_local **mr);

#endif
