/* SPDX-License-Identifier: BSD-3-Clause */
/* forker.h -- the traffic of the forking program, and the checks of its children. */
#ifndef LIFE_FORKER_H
#define LIFE_FORKER_H

#include "system/lib/target.h"
#include "system/lib/traffic.h"

struct forker {
	struct target target;   /* other processes write to the region of this target */
	struct traffic traffic; /* this traffic is written to another target */
};

/* Runs in the child. Returns 0, or the line of the first failed check. */
int forker_child(struct forker *f);

#endif
