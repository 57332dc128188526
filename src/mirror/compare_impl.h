/* SPDX-License-Identifier: BSD-3-Clause */
/* compare_impl.h -- declarations that compare.c and compare_judge.c share. All calls need the
 * set's lock. */
#ifndef MIRROR_COMPARE_IMPL_H
#define MIRROR_COMPARE_IMPL_H

#include "mirror/set.h"

/* Call this after every member was compared or cannot be compared: decides about the members that
 * differ. */
void compare_judge(struct rpmirror *m);
void compare_note_difference(struct packet_verified *v, const struct packet_difference *d);

#endif
