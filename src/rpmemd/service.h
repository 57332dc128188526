/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h -- what the initiator of one session gets: a pool of the pool-set directory, and lanes
 * to it. */
#ifndef RPMEMD_SERVICE_H
#define RPMEMD_SERVICE_H

#include "poolset/pool.h"
#include "rpmemd/control.h"
#include "rpmemd/data.h"
#include "rpmemd/watch.h"

/* Zeroed but for what the comments say. */
struct service {
	const struct settings *settings; /* set by the owner, as is */
	const char *addr;                /* of this machine, numeric, where the initiator came in */
	bool without_ssh;                /* volatile memory needs permission then, and */
	struct wire_key lane_key;        /* this is set; else it is made for the pool */

	struct poolset_pool *pool;
	bool created;
	uint64_t size; /* what the initiator uses of it */
	enum rpma_durability durability;
	struct persist persist;
	struct device device;
	struct data *data;
	struct watch *watch;
};

extern const struct control_service service_calls; /* arg: a struct service */

/* The initiator has gone without closing: a pool that it made and never used is removed. */
void service_end(struct service *s);

/* Of librpma's or another room's result on a pool: ERROR_NONE is WIRE_OK. */
enum wire_status service_status(const struct error *err);

#endif
