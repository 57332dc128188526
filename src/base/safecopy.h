/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * safecopy.h -- copies that survive memory which vanished under us.
 *
 * A load or store to a page of a truncated file, of a sparse file on a full
 * file system or of a mapping that is gone raises SIGBUS or SIGSEGV and would
 * kill the process (a peer could do that to us). These functions return -EFAULT
 * instead; bytes up to the fault may have been copied. No system call is made
 * on the way.
 */
#ifndef BASE_SAFECOPY_H
#define BASE_SAFECOPY_H

#include <stddef.h>
#include <stdint.h>

/* Make sure that faults inside the copies below reach us; cheap when already so. 0 or -errno. */
int safecopy_setup(void);
int safecopy(void *dst, const void *src, size_t len);
/* One 8-byte store; dst is 8-byte aligned. Never torn. */
int safecopy_store64(uint64_t *dst, uint64_t value);
/* One 8-byte load; src is 8-byte aligned. Never torn. */
int safecopy_load64(uint64_t *value, const uint64_t *src);
/* Is the byte at p readable? 0 or -EFAULT. */
int safecopy_probe(const void *p);

#endif
