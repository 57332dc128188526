/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h -- opens files below a directory; neither ".." nor a symbolic link leads out of the
 * directory. */
#ifndef POOLSET_PLACE_H
#define POOLSET_PLACE_H

#include "poolset/pool.h"

/* Open the file that the name leads to, with the access in flags. Creates nothing. */
int place_open(const struct poolset_place *place, int flags, int *fd, struct error *err);

#endif
