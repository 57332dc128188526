/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.h -- one connection of a listening daemon, served by a process of its own: so an
 * error in it affects one pool only.
 *
 * The listener starts it when the initiator has proved itself. It inherits two descriptors: the
 * connection, and a socket with what the proof left (struct direct_start).
 */
#ifndef RPMEMD_CONNECTION_H
#define RPMEMD_CONNECTION_H

#include "rpmemd/options.h"

#define CONNECTION_FD       3
#define CONNECTION_START_FD 4

/* The exit code. */
int connection_run(const struct options *opts, struct settings *s);

#endif
