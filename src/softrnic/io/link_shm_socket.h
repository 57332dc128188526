/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_socket.h -- the Unix socket on which two ends of a connection meet. No function waits.
 */
#ifndef IO_LINK_SHM_SOCKET_H
#define IO_LINK_SHM_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/stream/stream.h"

enum shm_packet_kind {
	SHM_PACKET_NONCE = 1,
	SHM_PACKET_MEMORY = 2, /* with one descriptor */
};

struct shm_packet {
	enum shm_packet_kind kind;
	uint64_t ring_size;            /* of MEMORY; of the initiator's NONCE: the maximum */
	uint8_t nonce[EXT_LINK_TOKEN]; /* of NONCE */
};

/* nonce may be NULL. */
struct shm_packet shm_packet_of(enum shm_packet_kind kind, const uint8_t *nonce);

/*
 * Returns a descriptor or -errno. The name is in the abstract name space; `calls` callers may wait.
 */
int shm_socket_listen(const uint8_t name[EXT_LINK_TOKEN], int calls);
int shm_socket_connect(const uint8_t name[EXT_LINK_TOKEN]);
/* Does this descriptor leave half of the descriptors to the application and further connections? */
bool shm_socket_is_spare(int fd);
/* Is the process at the other end run by our user, or by one that SOFTRNIC_SHM_UIDS permits? */
bool shm_socket_is_permitted(int fd);

/* pass: a descriptor, or -1 for none. Returns 0 or -errno. */
int shm_socket_send(int fd, const struct shm_packet *packet, int pass);
/*
 * Receive the next packet, which must be of this kind. Returns 0; -EAGAIN: it has not arrived;
 * -ECONNRESET: the other end is gone; -EPROTO: it is of another kind, or malformed. passed: NULL,
 * or receives the packet's one descriptor, which may be of any file; all others are closed.
 */
int shm_socket_recv(int fd, enum shm_packet_kind kind, struct shm_packet *packet, int *passed);

/* After the memory is shared, a byte only means "check the rings". */
void shm_socket_wake(int fd);
/* Read all wake-ups. Returns 0: there was none; 1: there were some; -ECONNRESET: the other end is
 * gone. */
int shm_socket_drain(int fd);

#endif
