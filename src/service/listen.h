/* SPDX-License-Identifier: BSD-3-Clause */
/* listen.h -- can a server listen at an address? */
#ifndef SERVICE_LISTEN_H
#define SERVICE_LISTEN_H

#include "service/address.h"

/*
 * Does the address belong to this machine, and is the port free? Call this before a server makes
 * anything. ERROR_LOCAL.
 */
int listen_check(const struct address *addr, struct error *err);

#endif
