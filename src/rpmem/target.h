/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * target.h -- parses the address of a target: "[user@]host[:port]" over ssh, or
 * "rpma://host[:port]" for a direct connection.
 */
#ifndef RPMEM_TARGET_H
#define RPMEM_TARGET_H

#include <stdbool.h>

#include "service/address.h"

#define TARGET_DIRECT_PORT "7205"
#define TARGET_TEXT        320

struct target {
	bool direct;
	char user[33]; /* "": no user; only with ssh */
	char host[256];
	char port[8]; /* a number; "": ssh chooses the port */
};

/* Returns 0 or EINVAL. */
int target_parse(const char *text, struct target *target);
/* Find the numeric addresses of the host, and give them the port. Returns their number, at most
 * max. */
int target_resolve(const char *host, const char *port, struct address *found, int max);

#endif
