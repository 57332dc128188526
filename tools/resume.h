/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * resume.h -- finds the offset at which a failed put can continue: the end of the bytes that the
 * server's medium and the source have in common.
 */
#ifndef TOOL_RESUME_H
#define TOOL_RESUME_H

#include "check.h"
#include "source.h"

/* Check that the failed put sent the same file. Otherwise print the error line and return
 * CLI_REFUSED. */
int resume_check(const struct check *check, const struct source *src);
/* Set c->begun, c->done and c->from to the end of the common bytes, and pass these bytes to
 * check_feed(). */
int resume_find(struct check *check, struct source *src);

#endif
