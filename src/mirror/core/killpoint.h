/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * killpoint.h -- named points at which a test ends a process, before and after what has to be
 * durable; in builds for tests only (RPMA_KILLPOINTS), nothing elsewhere.
 *
 * MIRROR_KILL_AT=name[:n] in the environment: SIGKILL when the point is reached for the n-th time.
 * MIRROR_KILL_LOG=file: each point's name is appended when it is reached for the first time, so
 * that a test can compare what its runs reached with this list. doc/mirror-format.md has the rules
 * W1 to W9.
 */
#ifndef MIRROR_CORE_KILLPOINT_H
#define MIRROR_CORE_KILLPOINT_H

#include <stdbool.h>

/* name, who reaches it, where */
#define KILLPOINTS(X)                                                                              \
	X(slot_written, "daemon", "a record is durable in its slot, and not yet marked as whole")  \
	X(w1_before, "daemon", "connections are cut, the promise is not written")                  \
	X(w1_after, "daemon", "the promise is durable, and not answered")                          \
	X(w2_before, "library", "extents are stored in the table, and not durable")                \
	X(w2_after, "library", "they are durable, and nothing was written to them")                \
	X(w3_before, "library", "an extent is to turn cold, its bits are not durable")             \
	X(w3_after, "library", "they are durable, and its slot is not free")                       \
	X(bitmap_before, "library", "a bitmap is to begin or to go on, and it does not count yet") \
	X(bitmap_after, "library", "it counts, and no swap excludes the member yet")               \
	X(drop_before, "library", "a member is in-sync again, and its bitmap still counts")        \
	X(drop_after, "library", "it counts no more")                                              \
	X(w4_before, "daemon", "a resync is asked for, `syncing` is not written")                  \
	X(w4_after, "daemon", "it is durable, and no byte was copied")                             \
	X(w5_clear_before, "library", "a member has everything, its bitmap is not cleared")        \
	X(w5_clear_after, "library", "it is cleared, and the member still is `syncing`")           \
	X(w5_before, "daemon", "the last byte is durable, and `syncing` still set")                \
	X(w5_after, "daemon", "it is cleared, and not answered")                                   \
	X(w6_before, "daemon", "a change of the register is asked for, and not sent")              \
	X(w6_after, "daemon", "the register has answered, and the library does not know")          \
	X(w6_known, "library", "the library knows, and nothing was acknowledged since")            \
	X(w7_hold_before, "daemon", "a process asks for the copy, `clean` is set")                 \
	X(w7_hold_after, "daemon", "`clean` is cleared durably, and not answered")                 \
	X(w7_serve_before, "daemon", "the epoch serves, the copy does not say that it has it")     \
	X(w7_serve_after, "daemon", "it says so durably, and map has not returned")                \
	X(w7_release_before, "daemon", "the copy is unmapped, `clean` is not written")             \
	X(w7_release_after, "daemon", "it is durable")                                             \
	X(w9_before, "daemon", "an equalisation is asked for, its ranges are not durable")         \
	X(w9_after, "daemon", "they are durable, and no byte was copied")                          \
	X(retire_before, "daemon", "`serving` is committed, records are not retired")              \
	X(retire_middle, "daemon", "hot slots are free, intents still count")                      \
	X(retire_after, "daemon", "they are retired, and not answered")                            \
	X(flush_begin, "library", "a flush is asked for, its extents are cold or hot")             \
	X(flush_snapshot, "library", "its content is in the local copy, and nothing was sent")     \
	X(flush_posted, "library", "it was sent to all, and is not durable here")                  \
	X(flush_local, "library", "it is durable here, and perhaps elsewhere")                     \
	X(flush_settled, "library", "it is acknowledged by all, and has not returned")

enum killpoint {
#define KILLPOINT_ENUM(name, who, where) KILLPOINT_##name,
	KILLPOINTS(KILLPOINT_ENUM)
#undef KILLPOINT_ENUM
		KILLPOINT_COUNT
};

#ifdef RPMA_KILLPOINTS
extern bool killpoint_is_on; /* one of the variables is set */
void killpoint_reach(enum killpoint point);

static inline void killpoint(enum killpoint point)
{
	if (killpoint_is_on)
		killpoint_reach(point);
}
#else
static inline void killpoint(enum killpoint point)
{
}
#endif

#endif
