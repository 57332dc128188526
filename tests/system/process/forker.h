/* SPDX-License-Identifier: BSD-3-Clause */
/* forker.h -- the traffic of the forking program, and what its children check. */
#ifndef LIFE_FORKER_H
#define LIFE_FORKER_H

#include "system/lib/target.h"
#include "system/lib/traffic.h"

struct forker {
	struct target target;   /* other processes write to its region */
	struct traffic traffic; /* it writes to another target */
};

/* In the child: 0, or the line of the first check that failed. */
int forker_child(struct forker *f);

#endif
