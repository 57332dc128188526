/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.h -- writes that must happen in an order (W1 to W9), step by step, and the rule that must
 * hold if a step was interrupted by a power cut or because the process was killed.
 */
#ifndef TEST_STEPS_H
#define TEST_STEPS_H

#include "lib/mirror_copy.h"
#include "mirror/core/growth.h"

#define STEPS_EPOCH 7

struct step {
	const char *name;
	void (*before)(void); /* brings the copy into the state in which the step begins */
	int (*run)(void);     /* returns 0 if the step was answered */
	/* Does the loaded state keep the rule? done: the step was answered; otherwise the step
	 * only began. */
	bool (*holds)(bool done);
	uint64_t region, region_end; /* a medium that does not write this region must be caught */
};

extern const struct step steps[];
extern const unsigned steps_count;

/* The metadata that the steps work on; the test loads them. */
extern struct meta steps_meta;
extern struct member steps_member;
extern struct mirror_uuid steps_boot;

#endif
