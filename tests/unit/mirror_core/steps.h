/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.h -- the steps whose writes must happen in an order (rules W1 to W9 of
 * doc/mirror-format.md). Each step has a check that must succeed even if a power cut or a kill
 * interrupted the step.
 */
#ifndef TEST_STEPS_H
#define TEST_STEPS_H

#include "lib/mirror_copy.h"
#include "mirror/core/growth.h"

#define STEPS_EPOCH 7

struct step {
	const char *name;
	void (*before)(void); /* brings the copy into the state in which the step begins */
	int (*run)(void);     /* makes the step; returns 0 if the step was answered */
	/* Returns true if the loaded state keeps the rule. done: the step was answered; otherwise
	 * it only began. */
	bool (*holds)(bool done);
	/* region: if the medium does not write this region, the check must fail */
	uint64_t region, region_end;
};

extern const struct step steps[];
extern const unsigned steps_count;

/* The metadata and the member that the steps change; the test loads them. */
extern struct meta steps_meta;
extern struct member steps_member;
extern struct mirror_uuid steps_boot;

#endif
