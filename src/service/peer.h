/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h -- what each server uses of librpma: the device of its address, a port there, descriptors
 * in epoll, and the descriptions for its clients.
 */
#ifndef SERVICE_PEER_H
#define SERVICE_PEER_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "service/address.h"

/* Open the device that has the address. ERROR_LOCAL, with ENODEV. */
int peer_open_at(const char *host, struct ibv_context **context, struct rpma_peer **peer,
		 struct error *err);
/* Open the device that reaches the address of another end. librpma's result. */
int peer_open_to(const char *host, struct ibv_context **context, struct rpma_peer **peer);
/*
 * Listen there. A port "0" becomes a free one. *fd: readable when a connection request has come.
 * ERROR_LOCAL.
 */
int peer_listen(struct rpma_peer *peer, struct address *at, struct rpma_ep **ep, int *fd,
		struct error *err);

/*
 * Make epoll report the tag when the descriptor is readable, and make it non-blocking. -1 with
 * errno set on failure.
 */
int peer_watch(int epoll_fd, int fd, void *tag);

/*
 * The descriptor of the registration; desc has room for max bytes. librpma's result; RPMA_E_NOSUPP:
 * it is longer.
 */
int peer_describe_memory(const struct rpma_mr_local *mr, uint8_t *desc, size_t max, uint8_t *len);
/*
 * The descriptor of this end, for clients whose library flushes by reading back. With direct_write
 * such a read is enough.
 */
int peer_describe(bool direct_write, uint8_t *desc, size_t max, uint8_t *len);

#endif
