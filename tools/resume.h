/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resume.h -- where a put that failed can go on: behind all that the server reads back from its
 * medium as the source has it.
 */
#ifndef TOOL_RESUME_H
#define TOOL_RESUME_H

#include "check.h"
#include "source.h"

/* Is it the same file whose put failed there? CLI_REFUSED, with the line printed, if not. */
int resume_check(const struct check *check, const struct source *src);
/* Compare, and let c->begun, c->done and c->from be behind what is there; the check is fed it. */
int resume_find(struct check *check, struct source *src);

#endif
