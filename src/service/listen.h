/* SPDX-License-Identifier: BSD-3-Clause */
/* listen.h -- can a server listen at an address? */
#ifndef SERVICE_LISTEN_H
#define SERVICE_LISTEN_H

#include "service/address.h"

/*
 * Is the address this machine's and the port free? To be called before anything is made for a
 * server. ERROR_LOCAL.
 */
int listen_check(const struct address *addr, struct error *err);

#endif
