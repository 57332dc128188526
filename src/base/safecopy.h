/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * safecopy.h -- copies that return an error where a load or store would fault.
 *
 * A load or store to a page of a truncated file, of a sparse file on a full
 * file system or of a mapping that is gone raises SIGBUS or SIGSEGV and would
 * kill the process (a peer could cause that). These functions return -EFAULT
 * instead; bytes up to the fault may have been copied.
 *
 * On x86-64 no system call is made on the way, except in a thread that blocks
 * SIGBUS or SIGSEGV (the kernel kills a process for a fault whose signal is
 * blocked): there they are unblocked for the time of the copy. A thread's mask is
 * read when it copies for the first time after a safecopy_setup(), so the library's own
 * threads leave both signals unblocked (thread.h). On other processors every copy is
 * a system call.
 */
#ifndef BASE_SAFECOPY_H
#define BASE_SAFECOPY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Install the handlers that catch faults in the copies below; cheap if they are installed. Called
 * before the first copy and at each registration of memory, because the application may have
 * installed its own handlers since. 0 or -errno.
 */
int safecopy_setup(void);
int safecopy(void *dst, const void *src, size_t len);
/* Store 8 bytes at once, never torn. dst is 8-byte aligned. */
int safecopy_store64(uint64_t *dst, uint64_t value);
/* Load 8 bytes at once, never torn. src is 8-byte aligned. */
int safecopy_load64(uint64_t *value, const uint64_t *src);
/*
 * One atomic compare-and-swap of the aligned word at p: if it equals *expected it becomes
 * `desired`. *expected then gets the previous value, swapped or not. Atomic with all other CPUs'
 * accesses on every processor; where there is no fix-up, the fault is caught by safecopy_guard().
 */
int safecopy_cmpxchg64(uint64_t *p, uint64_t *expected, uint64_t desired);
/* Is the byte at p readable? 0 or -EFAULT. */
int safecopy_probe(const void *p);
/*
 * Call fn(addr, len). A fault on an address of the range ends fn, and the call returns -EFAULT; so
 * fn must hold no lock or resource where it may fault. Returns 0 without a fault.
 */
int safecopy_guard(const void *addr, size_t len, void (*fn)(const void *addr, size_t len));

#endif
