/* SPDX-License-Identifier: BSD-3-Clause */
/* init.h -- declarations shared by the files of `rpmirror init`. */
#ifndef RPMIRROR_INIT_H
#define RPMIRROR_INIT_H

#include "args.h"
#include "mirror/core/types.h"
#include "mirror/register/register.h"
#include "out.h"

struct init_opts {
	const char *set, *uri, *lonely, *from, *join, *secret, *local_error, *address;
	struct args_list members, here;
	uint64_t size, min_copies, lease_ms, replica_timeout_ms, slow_ms, holdoff_ms, blocked_ms;
	bool blocked_for_ever;
	/* hot extents of the copies that this command makes; 0: the default */
	uint64_t hot_extents;
};

/* Make the configuration of the first record, without in-sync members. Returns 0, or the exit code
 * after a printed error. */
int init_config(const struct init_opts *opts, struct mirror_config *config);
/* Find the members whose copies this command makes on this host. */
int init_local(const struct init_opts *opts, const struct mirror_config *config,
	       mirror_mask *local);
/* Print the configuration that each host's daemon needs. */
void init_print_advice(const struct init_opts *opts, const struct mirror_config *config,
		       mirror_mask made);

#endif
