/* SPDX-License-Identifier: BSD-3-Clause */
/* holder.h -- the holder: the process that maps a set, as recorded in the metadata. Only the
 * loop's thread calls these functions. */
#ifndef MIRRORD_HOLDER_H
#define MIRRORD_HOLDER_H

#include "mirrord/impl.h"

/*
 * Returns the time at which the process started, in clock ticks since the boot; 0: unknown. A
 * later process with the same number has another start time.
 */
uint64_t holder_start_time(pid_t pid);

/* Fill s->holder and watch the process. When the process exits, the set is released. Returns 0 or
 * -errno. */
int holder_watch(struct set *s, pid_t pid);

/* Record that the client, which is the holder, runs the program that mapped the set. */
void holder_note_program(struct set *s, const struct client *client);
/*
 * Call this when a client asks to map the set. If the client's process is already the holder, the
 * process runs another program by now; the former program's mapping is gone, so release the set.
 */
void holder_end_former_program(struct set *s, const struct client *client);
/* Call this when the holder has lost its connection. If the process runs another program now,
 * release the set. */
void holder_look_at_program(struct set *s);

/* Returns true if the client's process is the holder. */
bool holder_is(const struct set *s, const struct client *client);

/* Returns true if the holder in the metadata may be alive. */
bool holder_may_live(const struct set *s);

/*
 * After the daemon's start, find out whether the holder in the metadata still exists. As long as
 * this is unknown, the holder stays, and the call must be repeated.
 */
void holder_find(struct set *s);

/* Record that no process maps the set any more. clean: none of the process's stores are in
 * doubt. */
void holder_release(struct set *s, bool clean);

#endif
