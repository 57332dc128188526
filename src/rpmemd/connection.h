/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.h -- serves one connection of a listening daemon in its own process, so that an error
 * affects only one pool.
 *
 * The listener starts the process after the initiator has proved itself. The process inherits two
 * descriptors: the connection, and a socket with the result of the proof (struct direct_start).
 */
#ifndef RPMEMD_CONNECTION_H
#define RPMEMD_CONNECTION_H

#include "rpmemd/options.h"

#define CONNECTION_FD       3
#define CONNECTION_START_FD 4

/* Returns the exit code. */
int connection_run(const struct options *opts, struct settings *s);

#endif
