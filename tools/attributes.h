/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attributes.h -- copies the attributes of a file, all but its content, to the file that replaces
 * it.
 */
#ifndef TOOL_ATTRIBUTES_H
#define TOOL_ATTRIBUTES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Owner, group, mode and extended attributes, of which access control lists are some. False: not
 * all could be given. */
bool attributes_copy(int from, const struct stat *st, int to);

#endif
