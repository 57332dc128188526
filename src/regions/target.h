/* SPDX-License-Identifier: BSD-3-Clause */
/* target.h -- parses the address of a region: "HOST[:PORT][:REGION]". Thread-safe. */
#ifndef REGIONS_TARGET_H
#define REGIONS_TARGET_H

#include "base/error.h"
#include "regions/hello.h"
#include "service/address.h"

#define TARGET_PORT "7204" /* equal to RPMA_FILE_PORT */

struct target {
	struct address server;
	char region[HELLO_NAME_MAX + 1]; /* "": the target names no region */
};

/* Parse a target. A word after the host that is not a number is the region. Returns 0 or
 * ERROR_ARGUMENT. */
int target_parse(const char *text, struct target *target, struct error *err);

#endif
