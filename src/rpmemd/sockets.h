/* SPDX-License-Identifier: BSD-3-Clause */
/* sockets.h -- listen at an address and a port, at each address of a name. */
#ifndef RPMEMD_SOCKETS_H
#define RPMEMD_SOCKETS_H

#include "base/error.h"
#include "service/address.h"

#define SOCKETS_MAX 8

/*
 * Make non-blocking sockets that listen. Port "0": one free port for all sockets, which the call
 * writes to *at. ERROR_LOCAL: nothing is open.
 */
int sockets_listen(struct address *at, int fds[SOCKETS_MAX], unsigned *count, struct error *err);

#endif
