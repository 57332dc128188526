/* SPDX-License-Identifier: BSD-3-Clause */
/* device.h -- the RDMA device of an address: the method by which it makes bytes durable, and a
 * port at which it listens. */
#ifndef RPMEMD_DEVICE_H
#define RPMEMD_DEVICE_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "rpmem/wire/message.h"
#include "rpmemd/settings.h"

struct device {
	const char *addr; /* numeric address; owned by the caller */
	struct rpma_peer *peer;
	/* Flushes of any initiator reach the medium, both native flushes and flushes by a Read. */
	bool writes_back;
};

/* Open the device. ERROR_LOCAL, with ENODEV: no device has the address. */
int device_open(struct device *d, const char *addr, struct error *err);
void device_close(struct device *d);

/* Returns the method for a pool of that durability, if the initiator requests `wanted`. */
enum wire_method device_method(const struct device *d, const struct settings *s,
			       enum rpma_durability durability, enum wire_method wanted);

/* Listen at a port in the range. Returns 0 or ERROR_LOCAL. */
int device_listen(const struct device *d, const struct settings_ports *range, struct rpma_ep **ep,
		  uint16_t *port, struct error *err);

#endif
