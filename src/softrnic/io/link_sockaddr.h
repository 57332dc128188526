/* SPDX-License-Identifier: BSD-3-Clause */
/* link_sockaddr.h -- addresses of links, and those of sockets and rdma_cm. */
#ifndef IO_LINK_SOCKADDR_H
#define IO_LINK_SOCKADDR_H

#include <sys/socket.h>

#include "softrnic/io/link_addr.h"

/* LINK_NONE: a family that no link has. */
struct link_addr link_addr_from(const struct sockaddr *sa);
/* Returns the length; 0 for LINK_NONE, whose family is AF_UNSPEC then. */
socklen_t link_addr_to(const struct link_addr *addr, struct sockaddr_storage *ss);

#endif
