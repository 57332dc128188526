/* SPDX-License-Identifier: BSD-3-Clause */
/* remove.h -- rpmemd --remove: removes a pool. */
#ifndef RPMEMD_REMOVE_H
#define RPMEMD_REMOVE_H

#include "rpmemd/options.h"

/* Returns the exit code: 0, or an errno. */
int remove_pool(const struct options *opts, const struct settings *s);

#endif
