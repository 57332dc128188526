/* SPDX-License-Identifier: BSD-3-Clause */
/* endpoint.h -- where the initiator came in, and from where. */
#ifndef RPMEMD_ENDPOINT_H
#define RPMEMD_ENDPOINT_H

#include <stdbool.h>

#include "rpmem/wire/message.h"

struct endpoint {
	char here[WIRE_ADDR_MAX + 1];  /* the address of this machine, numeric */
	char there[WIRE_ADDR_MAX + 1]; /* the initiator's, numeric; "": unknown */
};

/* From the value of SSH_CONNECTION. False: it is NULL or malformed; then here is 127.0.0.1. */
bool endpoint_from_ssh(const char *connection, struct endpoint *e);
/* Of a TCP connection; an IPv4 address that came through IPv6 has its own form. 0 or -errno. */
int endpoint_from_socket(int fd, struct endpoint *e);

#endif
