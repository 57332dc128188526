/* SPDX-License-Identifier: BSD-3-Clause */
/* opened.h -- the objects that the library has opened for a set's file, which only inner headers
 * show. */
#ifndef TESTS_MIRROR_OPENED_H
#define TESTS_MIRROR_OPENED_H

#include <librpmirror.h>

uint8_t *opened_shared(const struct rpmirror *m); /* the mapping that only the library uses */
int opened_fd(const struct rpmirror *m);

#endif
