/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_state.h -- values of the counter shm_state: whether a connection uses shared memory, or the
 * reason why not. The code that sets the counter and the code that prints it share this list.
 * softrnic(7) explains the values.
 */
#ifndef BASE_SHM_STATE_H
#define BASE_SHM_STATE_H

#include <stdint.h>

/* clang-format off */
#define SHM_STATES(X)                                                                              \
	X(NONE, "not offered by both ends")                                                        \
	X(OFFERED, "once it has carried some messages")                                            \
	X(USED, "in use")                                                                          \
	/* The connection stays on TCP, because */                                                               \
	X(WHY_SOCKET, "no Unix socket to meet on")                                                 \
	X(WHY_DESCRIPTORS, "half of the descriptors (RLIMIT_NOFILE) are in use")                   \
	X(WHY_ENGINE, "the engine takes no further descriptor")                                    \
	X(WHY_STRANGERS, "others connect to its Unix socket")                                      \
	X(WHY_NAME_SPACE, "the peer's Unix socket is not of this network name space")              \
	X(WHY_USER, "the peer is of another user")                                                 \
	X(WHY_UNPROVEN, "the process at the Unix socket is not the peer")                           \
	X(WHY_SEND, "the peer's Unix socket takes nothing")                                        \
	X(WHY_CLOSED, "the peer closed its Unix socket")                                           \
	X(WHY_PACKET, "a packet is malformed")                                                     \
	X(WHY_STEP, "a step of the peer's is out of turn")                                         \
	X(WHY_PEER, "the peer does not want to")                                                   \
	X(WHY_TIME, "the peer takes too long")                                                     \
	X(WHY_MAX, "SOFTRNIC_SHM_MAX_MIB is reached")                                              \
	X(WHY_FILE, "rings are longer than a file may be (RLIMIT_FSIZE)")                          \
	X(WHY_MEMORY, "memory is short, or near the limit of its cgroup")                          \
	X(WHY_SEALS, "the peer's memory is not sealed, or not of the agreed size and pages")       \
	X(WHY_MAP, "the memory cannot be mapped")                                                  \
	X(WHY_CLOSING, "descriptors that peers have passed take long to close")
/* clang-format on */

enum shm_state {
#define X(name, text) SHM_##name,
	SHM_STATES(X)
#undef X
};

const char *shm_state_str(uint64_t state); /* accepts values outside the list, too */

#endif
