/* SPDX-License-Identifier: BSD-3-Clause */
/* link_shm_socket.h -- the Unix socket on which two ends of a connection meet; nothing waits. */
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
	uint64_t ring_size;            /* of MEMORY; of the initiator's NONCE: at most */
	uint8_t nonce[EXT_LINK_TOKEN]; /* of NONCE */
};

/* nonce NULL: none. */
struct shm_packet shm_packet_of(enum shm_packet_kind kind, const uint8_t *nonce);

/* A descriptor or -errno. The name is of the abstract name space; so many calls may wait. */
int shm_socket_listen(const uint8_t name[EXT_LINK_TOKEN], int calls);
int shm_socket_connect(const uint8_t name[EXT_LINK_TOKEN]);
/* Does it leave the application, and further connections, half of the descriptors? */
bool shm_socket_is_spare(int fd);
/* Is the process at the other end of our user, or of one that SOFTRNIC_SHM_UIDS permits? */
bool shm_socket_is_permitted(int fd);

/* 0 or -errno; pass -1: no descriptor. */
int shm_socket_send(int fd, const struct shm_packet *packet, int pass);
/*
 * The next packet, which must be of this kind: 0, -EAGAIN: it has not come, -ECONNRESET: the other
 * end is gone, -EPROTO: it is another one, or malformed. passed: NULL, or gets its one descriptor,
 * which may be any; all others are closed.
 */
int shm_socket_recv(int fd, enum shm_packet_kind kind, struct shm_packet *packet, int *passed);

/* After the memory is shared: a byte means "look at the rings", and nothing else. */
void shm_socket_wake(int fd);
/* Take what has come. 0: nothing; 1: something; -ECONNRESET: the other end is gone. */
int shm_socket_drain(int fd);

#endif
