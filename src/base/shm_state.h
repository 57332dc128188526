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
	X(OFFERED, "offered, starts after some messages")                                          \
	X(USED, "in use")                                                                          \
	/* The connection stays on TCP, because */                                                 \
	X(WHY_SOCKET, "there is no Unix socket for the exchange of descriptors")                   \
	X(WHY_DESCRIPTORS, "half of the descriptors (RLIMIT_NOFILE) are in use")                   \
	X(WHY_ENGINE, "the engine accepts no further descriptor")                                  \
	X(WHY_STRANGERS, "other processes connect to the Unix socket")                             \
	X(WHY_NAME_SPACE, "the peer's Unix socket is not of this network namespace")               \
	X(WHY_USER, "the peer belongs to another user")                                            \
	X(WHY_UNPROVEN, "the process at the Unix socket is not the peer")                          \
	X(WHY_SEND, "the peer's Unix socket accepts no data")                                      \
	X(WHY_CLOSED, "the peer closed its Unix socket")                                           \
	X(WHY_PACKET, "a packet is malformed")                                                     \
	X(WHY_STEP, "the peer sent a packet out of order")                                         \
	X(WHY_PEER, "the peer refuses; the state at the peer has the reason")                      \
	X(WHY_TIME, "the peer does not answer in time")                                            \
	X(WHY_MAX, "SOFTRNIC_SHM_MAX_MIB is reached")                                              \
	X(WHY_FILE, "the rings are longer than a file may be (RLIMIT_FSIZE)")                      \
	X(WHY_MEMORY, "memory is short, or near the limit of the memory cgroup")                   \
	X(WHY_SEALS, "the peer's memory does not have the agreed seals, size and pages")           \
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
