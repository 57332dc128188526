/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link_shm_socket.h -- the Unix socket by which the two ends of a connection exchange nonces and
 * descriptors. No function waits.
 */
#ifndef IO_LINK_SHM_SOCKET_H
#define IO_LINK_SHM_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "softrnic/stream/stream.h"

enum shm_packet_kind {
	SHM_PACKET_NONCE = 1,
	SHM_PACKET_MEMORY = 2, /* contains one descriptor */
};

struct shm_packet {
	enum shm_packet_kind kind;
	/* in MEMORY: size of a ring; in the initiator's NONCE: its maximum */
	uint64_t ring_size;
	uint8_t nonce[EXT_LINK_TOKEN]; /* in NONCE */
};

/* `nonce` may be NULL. */
struct shm_packet shm_packet_of(enum shm_packet_kind kind, const uint8_t *nonce);

/*
 * Listen under this name in the abstract name space; up to `calls` callers may wait. Returns a
 * descriptor or -errno.
 */
int shm_socket_listen(const uint8_t name[EXT_LINK_TOKEN], int calls);
int shm_socket_connect(const uint8_t name[EXT_LINK_TOKEN]);
/* Does the number of this descriptor show that half of all descriptors are left for the application
 * and further connections? */
bool shm_socket_is_spare(int fd);
/* Does the process at the other end belong to the user of this process, or to a user that
 * SOFTRNIC_SHM_UIDS permits? */
bool shm_socket_is_permitted(int fd);

/* `pass` is a descriptor, or -1 for none. Returns 0 or -errno. */
int shm_socket_send(int fd, const struct shm_packet *packet, int pass);
/*
 * Receive the next packet, which must be of this kind. Returns 0, -EAGAIN if no packet has arrived,
 * -ECONNRESET if the other end is gone, or -EPROTO if the packet is of another kind or malformed.
 * If `passed` is not NULL, it gets the packet's descriptor, which may be of any file. Other
 * descriptors are closed.
 */
int shm_socket_recv(int fd, enum shm_packet_kind kind, struct shm_packet *packet, int *passed);

/* Send a wake-up. After the memory is shared, a byte on the socket only means "check the rings". */
void shm_socket_wake(int fd);
/* Read all wake-ups. Returns 1 if there were wake-ups, 0 if there were none, or -ECONNRESET if the
 * other end is gone. */
int shm_socket_drain(int fd);

#endif
