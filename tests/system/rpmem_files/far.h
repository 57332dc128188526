/* SPDX-License-Identifier: BSD-3-Clause */
/* far.h -- for tests of failures: scripts that replace ssh, and calls that must fail with an
 * errno. */
#ifndef RPMEM_FILES_FAR_H
#define RPMEM_FILES_FAR_H

#include "system/librpmem/place.h"

/*
 * From now on, run this shell script instead of ssh. In the script $far is the command for the
 * target, and $rpmemd starts rpmemd with the pool sets and without a log. NULL: use the replacement
 * of place.h.
 */
void far_ssh(const char *script);

/* Write a file among the pool sets; their folder replaces "@" in the text. */
void far_write(const char *name, const char *text);
void far_write_bytes(const char *name, size_t at, const void *bytes, size_t len);
void far_read_bytes(const char *name, size_t at, void *bytes, size_t len);
bool far_exists(const char *name);

/* Expect that these calls fail with this errno, and with a text that has these words. attr may be
 * NULL. */
void far_no_create(const char *set, size_t size, const struct rpmem_pool_attr *attr, int error,
		   const char *words);
void far_no_open(const char *set, size_t size, int error, const char *words);

#endif
