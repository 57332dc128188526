/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h -- checks once a second whether the paths of a pool's parts still lead to the parts.
 *
 * A separate thread checks, because a file system may not answer. If the thread does not come back,
 * it is abandoned together with its memory.
 */
#ifndef RPMEMD_WATCH_H
#define RPMEMD_WATCH_H

#include "poolset/pool.h"

struct watch;

/* NULL: no memory, descriptor or thread is available. */
struct watch *watch_start(const struct poolset_pool *pool);
/* NULL is no error. */
void watch_stop(struct watch *w);
/* Readable when a part is lost. */
int watch_get_fd(const struct watch *w);
/* Returns true if a part is lost, also if its name comes back later. err has the text. */
bool watch_has_lost(struct watch *w, struct error *err);
/* The same, after an immediate check. */
bool watch_look(struct watch *w, struct error *err);

#endif
