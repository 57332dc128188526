/* SPDX-License-Identifier: BSD-3-Clause */
/* opened.h -- what the library has opened of a set's file, which only its inner headers show. */
#ifndef TESTS_MIRROR_OPENED_H
#define TESTS_MIRROR_OPENED_H

#include <librpmirror.h>

uint8_t *opened_shared(const struct rpmirror *m); /* its own mapping */
int opened_fd(const struct rpmirror *m);

#endif
