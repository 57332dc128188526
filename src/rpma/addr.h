/* SPDX-License-Identifier: BSD-3-Clause */
/* addr.h -- addresses as text. */
#ifndef RPMA_ADDR_H
#define RPMA_ADDR_H

#include <stddef.h>
#include <sys/socket.h>

/*
 * Numeric, without the port. RPMA_E_INVAL: the text does not fit; RPMA_E_UNKNOWN: the address is
 * not of IP. On failure addr does not change.
 */
int addr_text(const struct sockaddr *sa, char *addr, size_t size);

#endif
