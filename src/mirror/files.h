/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * files.h -- detects that the application has closed the descriptors of a mapped set
 * (closefrom(3)).
 *
 * Then the set ends: each call returns an error, and no thread waits for these descriptors. Their
 * numbers may belong to other files by then, so these numbers are not used any more. The sockets of
 * librpma's connections are closed as well, so none of librpma's objects is used or deleted any
 * more. The functions are called with the set's lock.
 */
#ifndef MIRROR_FILES_H
#define MIRROR_FILES_H

#include <stdbool.h>

struct rpmirror;

/* Record the identity of the set's files, after they were opened. */
void files_note(struct rpmirror *m);
/* Check the descriptors. Returns true if some are lost; the set has then ended. */
bool files_look(struct rpmirror *m);

#endif
