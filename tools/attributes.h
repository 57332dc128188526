/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attributes.h -- what a file has beside its content, given to the one that takes its place.
 */
#ifndef TOOL_ATTRIBUTES_H
#define TOOL_ATTRIBUTES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Owner, group, mode and extended attributes, of which access control lists are some. False: not
 * all could be given. */
bool attributes_copy(int from, const struct stat *st, int to);

#endif
