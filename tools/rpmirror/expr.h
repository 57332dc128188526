/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expr.h -- conditions of `rpmirror wait`: KEY=VALUE[|VALUE...][,...]. A condition holds if all
 * its terms hold. Pure.
 *
 * Keys: health, phase, primary (a member's name, or none), and for a member M: copy.M, link.M,
 * flow.M, role.M, insync.M (yes, no).
 */
#ifndef RPMIRROR_EXPR_H
#define RPMIRROR_EXPR_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#define EXPR_TERMS 16

struct expr_term {
	const char *key, *member, *values; /* member: NULL for the set's keys; values: "a|b" */
};

struct expr {
	char text[512]; /* the expression, cut into its parts */
	struct expr_term terms[EXPR_TERMS];
	unsigned count;
};

/* Parse an expression. Returns false with the reason in `why`. A word that no status can have is
 * refused, because a wait for it would never end. */
bool expr_parse(struct expr *e, const char *text, char *why, size_t size);
/* Returns true if the expression holds for this set of a status. Otherwise `why` names the first
 * term that does not hold, and the actual value. */
bool expr_holds(const struct expr *e, const json_t *set, char *why, size_t size);

#endif
