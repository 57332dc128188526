/* SPDX-License-Identifier: BSD-3-Clause */
/* holder.h -- the process that maps a set, as recorded in the metadata. The loop's thread only. */
#ifndef MIRRORD_HOLDER_H
#define MIRRORD_HOLDER_H

#include "mirrord/impl.h"

/*
 * When the process started, in clock ticks since the boot; 0: not known. A later process with the
 * same number has another start time.
 */
uint64_t holder_start_time(pid_t pid);

/* Fills s->holder and watches the process. When it ends, the set is released. 0 or -errno. */
int holder_watch(struct set *s, pid_t pid);

/* The client is the holder, and runs the program that mapped the set. */
void holder_note_program(struct set *s, const struct client *client);
/*
 * A client asks to map the set. If the client is the process that maps the set already, it runs
 * another program since; the former program's mapping is gone, so release the set.
 */
void holder_end_former_program(struct set *s, const struct client *client);
/* The holder has lost its connection. If it runs another program now, release the set. */
void holder_look_at_program(struct set *s);

/* Is the client the process that maps the set? */
bool holder_is(const struct set *s, const struct client *client);

/* Is the holder in the metadata a process that may be alive? */
bool holder_may_live(const struct set *s);

/*
 * After the daemon's start: does the holder in the metadata still exist? As long as the answer is
 * unknown, the holder stays, and the call has to be repeated.
 */
void holder_find(struct set *s);

/* No process maps the set any more. clean: nothing that the process stored is in doubt. */
void holder_release(struct set *s, bool clean);

#endif
