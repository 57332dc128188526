/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h -- the service of one session: a pool in the pool-set directory, and lanes to it. */
#ifndef RPMEMD_SERVICE_H
#define RPMEMD_SERVICE_H

#include "poolset/pool.h"
#include "rpmemd/control.h"
#include "rpmemd/data.h"
#include "rpmemd/watch.h"

/* Zeroed, except for members that the comments name. */
struct service {
	const struct settings *settings; /* the owner sets this member, and the next */
	/* numeric address of this machine at which the initiator came in */
	const char *addr;
	bool without_ssh;         /* then volatile memory needs a permission, and */
	struct wire_key lane_key; /* this key is set; otherwise it is made for the pool */

	struct poolset_pool *pool;
	bool created;
	uint64_t size; /* bytes that the initiator uses */
	enum rpma_durability durability;
	struct persist persist;
	struct device device;
	struct data *data;
	struct watch *watch;
};

extern const struct control_service service_calls; /* arg: a struct service * */

/* The initiator has gone without a close. A pool that it created and never used is removed. */
void service_end(struct service *s);

/* The status for a result of librpma or of another room on a pool: WIRE_OK for ERROR_NONE. */
enum wire_status service_status(const struct error *err);

#endif
