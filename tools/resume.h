/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resume.h -- finds the offset at which a failed put can continue: the end of the bytes that the
 * server's medium and the source have in common.
 */
#ifndef TOOL_RESUME_H
#define TOOL_RESUME_H

#include "check.h"
#include "source.h"

/* Did the failed put send the same file? Otherwise prints the line and returns CLI_REFUSED. */
int resume_check(const struct check *check, const struct source *src);
/* Compare, set c->begun, c->done and c->from to the end of the common bytes, and feed these bytes
 * to the check. */
int resume_find(struct check *check, struct source *src);

#endif
