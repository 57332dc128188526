/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attributes.h -- copies the attributes of a file to the file that replaces it: everything except
 * the content.
 */
#ifndef TOOL_ATTRIBUTES_H
#define TOOL_ATTRIBUTES_H

#include <stdbool.h>
#include <sys/stat.h>

/* Copy owner, group, mode and extended attributes, including access control lists. Returns false if
 * not all could be set. */
bool attributes_copy(int from, const struct stat *st, int to);

#endif
