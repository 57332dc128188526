/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * files.h -- descriptors of a mapped set, which the application may have closed (closefrom(3)).
 *
 * The set ends then: each call returns an error, no thread waits for them, and files that have got
 * their numbers since are left alone. Sockets of librpma's connections go with them, so none of its
 * objects is used or deleted any more. Under the set's lock.
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
