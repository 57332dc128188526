/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * killpoint.h -- named points at which a test ends or stops a process, before and after each step
 * that has to be durable. Only builds for tests (RPMA_KILLPOINTS) have them.
 *
 * Variables of the environment: MIRROR_KILL_AT=name[:n] raises SIGKILL when the point is reached
 * for the n-th time. MIRROR_STOP_AT=name[:n] raises SIGSTOP, so that a test can change the
 * process's surroundings at that moment. MIRROR_KILL_LOG=file appends each point's name when the
 * point is reached for the first time, so that a test can compare the points that its runs reached
 * with this list. doc/mirror-format.md has the rules W1 to W9.
 */
#ifndef MIRROR_CORE_KILLPOINT_H
#define MIRROR_CORE_KILLPOINT_H

#include <stdbool.h>

/* The kind of process that reaches a point: the application, the daemon on the host of the (next)
 * primary, or the daemon on another host. The soak test kills each kind (tests/README.md). */
enum {
	KILLPOINT_LIBRARY = 1,
	KILLPOINT_PRIMARY = 2,
	KILLPOINT_REPLICA = 4,
	KILLPOINT_DAEMON = KILLPOINT_PRIMARY | KILLPOINT_REPLICA
};

/* Each entry: name, kinds of processes, state at that point. */
#define KILLPOINTS(X)                                                                              \
	X(slot_written, KILLPOINT_DAEMON,                                                          \
	  "a record is durable in its slot, and not yet marked as whole")                          \
	X(w1_before, KILLPOINT_DAEMON, "connections are cut, the promise is not written")          \
	X(w1_after, KILLPOINT_DAEMON, "the promise is durable, and not answered")                  \
	X(w2_before, KILLPOINT_LIBRARY | KILLPOINT_REPLICA,                                        \
	  "extents are stored in the table, and not durable")                                      \
	X(w2_after, KILLPOINT_LIBRARY | KILLPOINT_REPLICA,                                         \
	  "they are durable, and nothing was written to them")                                     \
	X(w3_before, KILLPOINT_LIBRARY, "an extent is to turn cold, its bits are not durable")     \
	X(w3_after, KILLPOINT_LIBRARY, "they are durable, and its slot is not free")               \
	X(direct_opened, KILLPOINT_LIBRARY,                                                        \
	  "a slot is durable and its extent writable, before the store")                           \
	X(direct_protected, KILLPOINT_LIBRARY,                                                     \
	  "an extent is read-only again, its stores are not flushed")                              \
	X(bitmap_before, KILLPOINT_LIBRARY,                                                        \
	  "a bitmap is to begin or to go on, and it does not count yet")                           \
	X(bitmap_after, KILLPOINT_LIBRARY, "it counts, and no swap excludes the member yet")       \
	X(drop_before, KILLPOINT_LIBRARY,                                                          \
	  "a member is in-sync again, and its bitmap still counts")                                \
	X(drop_after, KILLPOINT_LIBRARY, "it counts no more")                                      \
	X(w4_before, KILLPOINT_REPLICA, "a resync is asked for, `syncing` is not written")         \
	X(w4_after, KILLPOINT_REPLICA, "it is durable, and no byte was copied")                    \
	X(w5_clear_before, KILLPOINT_LIBRARY,                                                      \
	  "a member has everything, its bitmap is not cleared")                                    \
	X(w5_clear_after, KILLPOINT_LIBRARY, "it is cleared, and the member still is `syncing`")   \
	X(w5_before, KILLPOINT_REPLICA, "the last byte is durable, and `syncing` still set")       \
	X(w5_after, KILLPOINT_REPLICA, "it is cleared, and not answered")                          \
	X(w6_before, KILLPOINT_PRIMARY, "a change of the register is asked for, and not sent")     \
	X(w6_after, KILLPOINT_PRIMARY, "the register has answered, and the library does not know") \
	X(w6_known, KILLPOINT_LIBRARY, "the library knows, and nothing was acknowledged since")    \
	X(w7_hold_before, KILLPOINT_PRIMARY, "a process asks for the copy, `clean` is set")        \
	X(w7_hold_after, KILLPOINT_PRIMARY, "`clean` is cleared durably, and not answered")        \
	X(w7_serve_before, KILLPOINT_PRIMARY,                                                      \
	  "the epoch serves, the copy does not say that it has it")                                \
	X(w7_serve_after, KILLPOINT_PRIMARY, "it says so durably, and map has not returned")       \
	X(w7_release_before, KILLPOINT_PRIMARY, "the copy is unmapped, `clean` is not written")    \
	X(w7_release_after, KILLPOINT_PRIMARY, "it is durable")                                    \
	X(w9_before, KILLPOINT_REPLICA,                                                            \
	  "an equalisation is asked for, its ranges are not durable")                              \
	X(w9_after, KILLPOINT_REPLICA, "they are durable, and no byte was copied")                 \
	X(retire_before, KILLPOINT_DAEMON, "`serving` is committed, records are not retired")      \
	X(retire_middle, KILLPOINT_DAEMON, "hot slots are free, intents still count")              \
	X(retire_after, KILLPOINT_DAEMON, "they are retired, and not answered")                    \
	X(flush_begin, KILLPOINT_LIBRARY, "a flush is asked for, its extents are cold or hot")     \
	X(flush_snapshot, KILLPOINT_LIBRARY,                                                       \
	  "its content is in the local copy, and nothing was sent")                                \
	X(flush_posted, KILLPOINT_LIBRARY, "it was sent to all, and is not durable here")          \
	X(flush_local, KILLPOINT_LIBRARY, "it is durable here, and perhaps elsewhere")             \
	X(flush_settled, KILLPOINT_LIBRARY, "it is acknowledged by all, and has not returned")     \
	X(grow_room_before, KILLPOINT_DAEMON,                                                      \
	  "a set is to grow, the files of the copy are as they were")                              \
	X(grow_room_data, KILLPOINT_DAEMON,                                                        \
	  "the data file is longer, durably, the metadata file is not")                            \
	X(grow_room_long, KILLPOINT_DAEMON, "both are, and the copy does not say so")              \
	X(grow_room_after, KILLPOINT_DAEMON, "it says so durably, and the order is not answered")  \
	X(grow_all_have_room, KILLPOINT_DAEMON,                                                    \
	  "all in-sync copies have room, the register is not asked")                               \
	X(grow_ordered, KILLPOINT_DAEMON,                                                          \
	  "the register has the new size, the tool is not answered")                               \
	X(grow_take_before, KILLPOINT_DAEMON, "the register has the new size, the copy has not")   \
	X(grow_take_after, KILLPOINT_DAEMON, "it has, durably, and the new room is not used yet")  \
	X(placed_before, KILLPOINT_REPLICA,                                                        \
	  "a flush is placed in the replica's file, and not written back")                         \
	X(placed_after, KILLPOINT_REPLICA, "it is written back, and not answered")                 \
	X(persist_before, KILLPOINT_DAEMON, "any part of the metadata is stored, and not durable") \
	X(persist_after, KILLPOINT_DAEMON, "it is durable")                                        \
	X(answer_before, KILLPOINT_DAEMON, "a message to a primary's library is not sent")         \
	X(packet_before, KILLPOINT_PRIMARY, "a packet to this host's library is not sent")

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
