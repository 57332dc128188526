/* SPDX-License-Identifier: BSD-3-Clause */
/* listen.h -- checks that a server can listen at an address. */
#ifndef SERVICE_LISTEN_H
#define SERVICE_LISTEN_H

#include "service/address.h"

/*
 * Check that the address belongs to this machine, and that the port is free. A server calls this
 * before it creates any file. Returns 0 or ERROR_LOCAL.
 */
int listen_check(const struct address *addr, struct error *err);

#endif
