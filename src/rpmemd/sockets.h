/* SPDX-License-Identifier: BSD-3-Clause */
/* sockets.h -- listen at an address and a port, at each address of a name. */
#ifndef RPMEMD_SOCKETS_H
#define RPMEMD_SOCKETS_H

#include "base/error.h"
#include "service/address.h"

#define SOCKETS_MAX 8

/*
 * Makes non-blocking sockets. Port "0": one free port for all, which is written to *at.
 * ERROR_LOCAL, and nothing is open.
 */
int sockets_listen(struct address *at, int fds[SOCKETS_MAX], unsigned *count, struct error *err);

#endif
