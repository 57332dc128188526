/* SPDX-License-Identifier: BSD-3-Clause */
/* sockets.h -- listens at a port, at each address of a name. */
#ifndef RPMEMD_SOCKETS_H
#define RPMEMD_SOCKETS_H

#include "base/error.h"
#include "service/address.h"

#define SOCKETS_MAX 8

/*
 * Open non-blocking sockets that listen. Port "0" stands for one free port for all sockets; the
 * call writes the port to *at. On failure (ERROR_LOCAL) no socket stays open.
 */
int sockets_listen(struct address *at, int fds[SOCKETS_MAX], unsigned *count, struct error *err);

#endif
