/* SPDX-License-Identifier: BSD-3-Clause */
/* show.h -- prints a set of the status for people. */
#ifndef RPMIRROR_SHOW_H
#define RPMIRROR_SHOW_H

#include <jansson.h>

/* Print a line for the set, and a line for each member; normal values are left out. */
void show_set(const json_t *set);
/* Print in sentences why the set is not healthy, and what happens next. */
void show_explanation(const json_t *set);

#endif
