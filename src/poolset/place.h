/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h -- files below a directory, which neither ".." nor a symbolic link leads out of. */
#ifndef POOLSET_PLACE_H
#define POOLSET_PLACE_H

#include "poolset/pool.h"

/* Opens what the name leads to. Never for more than the flags say: nothing is created. */
int place_open(const struct poolset_place *place, int flags, int *fd, struct error *err);

#endif
