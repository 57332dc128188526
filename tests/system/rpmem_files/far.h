/* SPDX-License-Identifier: BSD-3-Clause */
/* far.h -- what stands for ssh in tests of failures, and calls that are to fail with an errno. */
#ifndef RPMEM_FILES_FAR_H
#define RPMEM_FILES_FAR_H

#include "system/librpmem/place.h"

/* From now on this shell script runs as ssh; "$far" in it is the command for the target, and
 * $rpmemd rpmemd, which finds the pool sets, and has no log. NULL: as place.h has it. */
void far_ssh(const char *script);

/* A file among the pool sets; "@" stands for their folder. */
void far_write(const char *name, const char *text);
void far_write_bytes(const char *name, size_t at, const void *bytes, size_t len);
void far_read_bytes(const char *name, size_t at, void *bytes, size_t len);
bool far_exists(const char *name);

/* They fail with that errno, and words that have these; attr may be NULL. */
void far_no_create(const char *set, size_t size, const struct rpmem_pool_attr *attr, int error,
		   const char *words);
void far_no_open(const char *set, size_t size, int error, const char *words);

#endif
