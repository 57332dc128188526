/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h -- checks once a second that the paths of a pool's parts still lead to the parts.
 *
 * A separate thread checks, because a file system may not answer. If a check never returns, the
 * thread and its memory are abandoned.
 */
#ifndef RPMEMD_WATCH_H
#define RPMEMD_WATCH_H

#include "poolset/pool.h"

struct watch;

/* Start the checks. Returns NULL if memory, a descriptor or a thread is missing. */
struct watch *watch_start(const struct poolset_pool *pool);
/* w may be NULL. */
void watch_stop(struct watch *w);
/* Returns a descriptor that becomes readable when a part is lost. */
int watch_get_fd(const struct watch *w);
/* Returns true if a part was lost, even if its name leads to the part again. err has the text. */
bool watch_has_lost(struct watch *w, struct error *err);
/* Like watch_has_lost(), but check immediately first. */
bool watch_look(struct watch *w, struct error *err);

#endif
