/* SPDX-License-Identifier: BSD-3-Clause */
/* holder.h -- the process that maps a set, as the metadata record it. The loop's thread only. */
#ifndef MIRRORD_HOLDER_H
#define MIRRORD_HOLDER_H

#include "mirrord/impl.h"

/* When the process started, in clock ticks since the boot; 0: not known. A later process with the
 * same number differs in it. */
uint64_t holder_start_time(pid_t pid);

/* Fills s->holder and watches the process: when it ends, the set is released. 0 or -errno. */
int holder_watch(struct set *s, pid_t pid);

/* Is the client the process that maps the set? */
bool holder_is(const struct set *s, const struct client *client);

/* The process that the metadata name as the holder is not known to have ended. */
bool holder_may_live(const struct set *s);

/* After the daemon's start: is the holder that the metadata name still there? It is kept as long as
 * that is not known; to be called again then. */
void holder_find(struct set *s);

/* No process maps the set any more; clean: nothing that it stored is in doubt. */
void holder_release(struct set *s, bool clean);

#endif
