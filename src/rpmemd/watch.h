/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h -- whether the parts of a pool stay what their paths lead to, looked at each second.
 *
 * A thread of its own looks, since a file system may let it wait; one that does not come back is
 * left behind with what it uses.
 */
#ifndef RPMEMD_WATCH_H
#define RPMEMD_WATCH_H

#include "poolset/pool.h"

struct watch;

/* NULL: no memory, descriptor or thread. */
struct watch *watch_start(const struct poolset_pool *pool);
/* NULL is no error. */
void watch_stop(struct watch *w);
/* Readable when a part is lost. */
int watch_get_fd(const struct watch *w);
/* True: a part is lost, and stays so if its name comes back; err has the words. */
bool watch_has_lost(struct watch *w, struct error *err);
/* The same, after a look now. */
bool watch_look(struct watch *w, struct error *err);

#endif
