/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.h -- what has to be written in an order (W1 to W9), step by step, and what must hold when a
 * step was cut off: by a power cut, or because the process was killed. */
#ifndef TEST_STEPS_H
#define TEST_STEPS_H

#include "lib/mirror_copy.h"
#include "mirror/core/growth.h"

#define STEPS_EPOCH 7

struct step {
	const char *name;
	void (*before)(void); /* gets to the state in which it begins */
	int (*run)(void);     /* 0: it was answered */
	/* Does what was loaded keep the rule? done: it was answered; else it began. */
	bool (*holds)(bool done);
	uint64_t region, region_end; /* a medium that lies here must be caught */
};

extern const struct step steps[];
extern const unsigned steps_count;

/* What the steps work on: loaded by the test. */
extern struct meta steps_meta;
extern struct member steps_member;
extern struct mirror_uuid steps_boot;

#endif
