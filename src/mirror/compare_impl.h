/* SPDX-License-Identifier: BSD-3-Clause */
/* compare_impl.h -- what compare.c and compare_judge.c share. The set's lock. */
#ifndef MIRROR_COMPARE_IMPL_H
#define MIRROR_COMPARE_IMPL_H

#include "mirror/set.h"

/* Every member was compared, or cannot be: decide about those that differ. */
void compare_judge(struct rpmirror *m);
void compare_note_difference(struct packet_verified *v, const struct packet_difference *d);

#endif
