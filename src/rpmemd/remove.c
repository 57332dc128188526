/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/remove.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "poolset/pool.h"

/* The initiator's library treats the exit code as an errno. */
#define REMOVE_CODE_MAX 254

int remove_pool(const struct options *opts, const struct settings *s)
{
	struct poolset_place place = {s->poolset_dir, opts->remove_set};
	unsigned flags = (opts->force ? POOLSET_REMOVE_FORCE : 0u) |
			 (opts->pool_set ? POOLSET_REMOVE_SET : 0u);
	struct error err = {.kind = ERROR_NONE};

	if (poolset_remove(&place, flags, &err)) {
		LOG_ERROR("%s", err.text);
		/* ssh passes this message to the initiator */
		fprintf(stderr, "rpmemd: %s\n", err.text);
		return err.cause > 0 && err.cause <= REMOVE_CODE_MAX ? err.cause : EIO;
	}
	if (err.kind) /* an obstacle that --force has ignored */
		LOG_WARNING("%s", err.text);
	else
		LOG_NOTICE("pool %s was removed", opts->remove_set);
	return 0;
}
