/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.h -- finds the two addresses of the initiator's connection. */
#ifndef RPMEMD_ENDPOINT_H
#define RPMEMD_ENDPOINT_H

#include <stdbool.h>

#include "rpmem/wire/message.h"

struct endpoint {
	char here[WIRE_ADDR_MAX + 1];  /* address of this machine, numeric */
	char there[WIRE_ADDR_MAX + 1]; /* address of the initiator, numeric; "": unknown */
};

/* Parse the value of SSH_CONNECTION. Returns false if the value is NULL or malformed; e->here is
 * then 127.0.0.1. */
bool endpoint_from_ssh(const char *connection, struct endpoint *e);
/* Get the addresses of a TCP connection. An IPv4 address that came through IPv6 is written as IPv4.
 * Returns 0 or -errno. */
int endpoint_from_socket(int fd, struct endpoint *e);

#endif
