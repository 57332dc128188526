/* SPDX-License-Identifier: BSD-3-Clause */
/* opened.h -- which objects the library has opened for a set's file; only inner headers declare
 * them. */
#ifndef TESTS_MIRROR_OPENED_H
#define TESTS_MIRROR_OPENED_H

#include <librpmirror.h>

uint8_t *opened_shared(const struct rpmirror *m); /* the mapping that only the library uses */
int opened_fd(const struct rpmirror *m);

#endif
