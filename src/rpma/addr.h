/* SPDX-License-Identifier: BSD-3-Clause */
/* addr.h -- converts addresses to text. */
#ifndef RPMA_ADDR_H
#define RPMA_ADDR_H

#include <stddef.h>
#include <sys/socket.h>

/*
 * Write the numeric address without the port. Returns RPMA_E_INVAL if the text does not fit, or
 * RPMA_E_UNKNOWN if it is not an IP address. On failure `addr` does not change.
 */
int addr_text(const struct sockaddr *sa, char *addr, size_t size);

#endif
