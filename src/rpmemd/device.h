/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h -- the RDMA device of an address, what it does for durability, and a port of it. */
#ifndef RPMEMD_DEVICE_H
#define RPMEMD_DEVICE_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rpmem/wire/message.h"
#include "rpmemd/settings.h"

struct device {
	const char *addr; /* the caller's: numeric */
	struct rpma_peer *peer;
	/* Flushes of any initiator reach the medium, by native flush or by reading. */
	bool writes_back;
};

/* ERROR_LOCAL, with ENODEV: there is none for the address. */
int device_open(struct device *d, const char *addr, struct error *err);
void device_close(struct device *d);

/* How bytes become durable, in a pool of that class, for an initiator that asks for `wanted`. */
enum wire_method device_method(const struct device *d, const struct settings *s,
			       enum rpma_durability durability, enum wire_method wanted);

/* Listen at a port of the range. ERROR_LOCAL. */
int device_listen(const struct device *d, const struct settings_ports *range, struct rpma_ep **ep,
		  uint16_t *port, struct error *err);

#endif
