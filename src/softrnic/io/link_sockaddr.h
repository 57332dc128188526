/* SPDX-License-Identifier: BSD-3-Clause */
/* link_sockaddr.h -- addresses of links, and those of sockets and rdma_cm. */
#ifndef IO_LINK_SOCKADDR_H
#define IO_LINK_SOCKADDR_H

#include <stddef.h>
#include <sys/socket.h>

#include "softrnic/io/link_addr.h"

/* LINK_NONE: a family that no link has. */
struct link_addr link_addr_from(const struct sockaddr *sa);
/* Returns the length; 0 for LINK_NONE, whose family is AF_UNSPEC then. */
socklen_t link_addr_to(const struct link_addr *addr, struct sockaddr_storage *ss);
/* Parse a numeric address, len bytes of text; a link-local one has its interface (fe80::1%eth0).
 * False: the text is no address, and *addr is unchanged. */
bool link_addr_parse(const char *text, size_t len, struct link_addr *addr);

#endif
