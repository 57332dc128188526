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

/* The client is the holder, and runs the program that has mapped the set. */
void holder_note_program(struct set *s, const struct client *client);
/* Of a client that asks to map the set: it is the process that maps it, but runs another program
 * since. What that process had mapped is gone: release it. */
void holder_end_former_program(struct set *s, const struct client *client);
/* The holder has no connection any more. The same, if it runs another program. */
void holder_look_at_program(struct set *s);

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
