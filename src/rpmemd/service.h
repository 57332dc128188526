/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h -- the service of one session: a pool in the folder of pool sets, and lanes to the
 * pool. */
#ifndef RPMEMD_SERVICE_H
#define RPMEMD_SERVICE_H

#include "poolset/pool.h"
#include "rpmemd/control.h"
#include "rpmemd/data.h"
#include "rpmemd/watch.h"

/* The owner zeroes this structure, and sets the members whose comments require it. */
struct service {
	const struct settings *settings; /* the owner sets this member and addr */
	/* numeric address of this machine to which the initiator has connected */
	const char *addr;
	/* if true, volatile memory needs a permission, and the owner sets lane_key */
	bool without_ssh;
	struct wire_key lane_key; /* made when the pool is opened, unless without_ssh */

	struct poolset_pool *pool;
	bool created;
	uint64_t size; /* number of bytes that the initiator uses */
	enum rpma_durability durability;
	struct persist persist;
	struct device device;
	struct data *data;
	struct watch *watch;
};

extern const struct control_service service_calls; /* its functions get a struct service * as arg */

/* Call this when the initiator has gone without a CLOSE. A pool that the initiator created and
 * never used is removed. */
void service_end(struct service *s);

#endif
