/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connection.h -- one connection of a listening daemon, served by a process of its own: so an
 * error in it affects one pool only.
 *
 * The process inherits two descriptors: the connection, and a socket to the listener, which it asks
 * by one byte for admission when the initiator has proved itself. The answer is one byte, too.
 */
#ifndef RPMEMD_CONNECTION_H
#define RPMEMD_CONNECTION_H

#include "rpmemd/options.h"

#define CONNECTION_FD          3
#define CONNECTION_LISTENER_FD 4

#define CONNECTION_ASK 'P'

enum connection_verdict {
	CONNECTION_ADMITTED = 'Y',
	CONNECTION_TOO_MANY = 'T',     /* pools */
	CONNECTION_ADDRESS_FULL = 'A', /* of this address */
};

/* The exit code. */
int connection_run(const struct options *opts, struct settings *s);

#endif
