/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * files.h -- the descriptors of a mapped set, which the application may have closed (closefrom(3)).
 *
 * If it has, the set ends: each call returns an error, and no thread waits for these descriptors.
 * Their numbers may belong to other files by then, which are left alone. The sockets of librpma's
 * connections are closed as well, so none of its objects is used or deleted any more. Called with
 * the set's lock.
 */
#ifndef MIRROR_FILES_H
#define MIRROR_FILES_H

#include <stdbool.h>

struct rpmirror;

/* The set's files are open: record their identity. */
void files_note(struct rpmirror *m);
/* True: some are lost, and the set has ended, now or before. */
bool files_look(struct rpmirror *m);

#endif
