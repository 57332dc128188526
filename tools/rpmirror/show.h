/* SPDX-License-Identifier: BSD-3-Clause */
/* show.h -- a set of the status, for people. */
#ifndef RPMIRROR_SHOW_H
#define RPMIRROR_SHOW_H

#include <jansson.h>

/* A line for the set, one for each member; normal values are left out. */
void show_set(const json_t *set);
/* Why it is not healthy, and what happens next, in sentences. */
void show_explanation(const json_t *set);

#endif
