/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h -- which device carries the lanes: an RDMA device where one reaches the target; the
 * software RNIC only where RPMEM_ENABLE_SOCKETS allows it.
 */
#ifndef RPMEM_DEVICE_H
#define RPMEM_DEVICE_H

#include <librpma.h>
#include <stdbool.h>

#include "rpmem/target.h"

#define DEVICE_ADDRESSES 8

struct device {
	bool is_softrnic;
	bool ipv4;       /* ssh is to use IPv4, as the original has it for its sockets */
	bool unresolved; /* the host has no address here; ssh may know it all the same */
};

/* Which kind it will be. 0 or an errno. */
int device_choose(const struct target *target, struct device *device);
/* A peer on the device that reaches addr. */
int device_open(const struct device *device, const char *addr, struct rpma_peer **peer);

/* Registration of memory, which is not thread-safe by librpma's contract. Librpma's results. */
int device_register(struct rpma_peer *peer, void *ptr, size_t size, int usage,
		    struct rpma_mr_local **mr);
void device_deregister(struct rpma_mr_local **mr);

#endif
