/* SPDX-License-Identifier: BSD-3-Clause */
/* link_sockaddr.h -- converts addresses between the types of links, sockets and rdma_cm. */
#ifndef IO_LINK_SOCKADDR_H
#define IO_LINK_SOCKADDR_H

#include <stddef.h>
#include <sys/socket.h>

#include "softrnic/io/link_addr.h"

/* Returns LINK_NONE for a family that no link supports. */
struct link_addr link_addr_from(const struct sockaddr *sa);
/* Returns the length of the address in *ss. For LINK_NONE it returns 0 and sets the family
 * AF_UNSPEC. */
socklen_t link_addr_to(const struct link_addr *addr, struct sockaddr_storage *ss);
/* Parse a numeric address of `len` characters. A link-local address includes its interface
 * (fe80::1%eth0). Returns false, and leaves *addr unchanged, if the text is not an address. */
bool link_addr_parse(const char *text, size_t len, struct link_addr *addr);

#endif
