/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h -- calls of librpma that all servers share: find the device of an address, listen at a
 * port, watch descriptors by epoll, describe memory to clients.
 */
#ifndef SERVICE_PEER_H
#define SERVICE_PEER_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "service/address.h"

/* Open the device that has the local address `host`. Returns 0, or ERROR_LOCAL with ENODEV. */
int peer_open_at(const char *host, struct ibv_context **context, struct rpma_peer **peer,
		 struct error *err);
/* Open the device that reaches the remote address `host`. Returns librpma's result. */
int peer_open_to(const char *host, struct ibv_context **context, struct rpma_peer **peer);
/*
 * Listen at *at. If the port is "0", the call replaces it by the free port that it got. *fd becomes
 * readable when a connection request has come. Returns 0 or ERROR_LOCAL.
 */
int peer_listen(struct rpma_peer *peer, struct address *at, struct rpma_ep **ep, int *fd,
		struct error *err);

/*
 * Make the descriptor non-blocking, and let epoll report `tag` when it is readable. Returns -1
 * with errno on failure.
 */
int peer_watch(int epoll_fd, int fd, void *tag);

/*
 * Get the descriptor of the registration; desc has room for max bytes. Returns librpma's result.
 * RPMA_E_NOSUPP: the descriptor is longer than max.
 */
int peer_describe_memory(const struct rpma_mr_local *mr, uint8_t *desc, size_t max, uint8_t *len);
/*
 * Get the peer descriptor of this end, for clients whose library flushes by an RDMA Read.
 * direct_write: such a Read is sufficient to make Writes durable.
 */
int peer_describe(bool direct_write, uint8_t *desc, size_t max, uint8_t *len);

#endif
