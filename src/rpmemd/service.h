/* SPDX-License-Identifier: BSD-3-Clause */
/* service.h -- the service of one session: a pool of the pool-set directory, and lanes to the
 * pool. */
#ifndef RPMEMD_SERVICE_H
#define RPMEMD_SERVICE_H

#include "poolset/pool.h"
#include "rpmemd/control.h"
#include "rpmemd/data.h"
#include "rpmemd/watch.h"

/* The owner zeroes this structure, and sets the members whose comments require it. */
struct service {
	const struct settings *settings; /* the owner sets this member, and the next */
	/* numeric address of this machine at which the initiator came in */
	const char *addr;
	/* volatile memory then needs a permission, and the owner sets lane_key */
	bool without_ssh;
	struct wire_key lane_key; /* made for the pool unless without_ssh */

	struct poolset_pool *pool;
	bool created;
	uint64_t size; /* number of bytes that the initiator uses */
	enum rpma_durability durability;
	struct persist persist;
	struct device device;
	struct data *data;
	struct watch *watch;
};

extern const struct control_service service_calls; /* arg: a struct service * */

/* The initiator has gone without a close. Remove a pool that the initiator created and never
 * used. */
void service_end(struct service *s);

/* The status for an error of librpma or of another room about a pool; WIRE_OK for ERROR_NONE. */
enum wire_status service_status(const struct error *err);

#endif
