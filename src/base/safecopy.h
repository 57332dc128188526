/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * safecopy.h -- copies that return an error where a plain load or store would fault.
 *
 * A load or store to a page of a truncated file, of a sparse file on a full file system, or of a
 * removed mapping raises SIGBUS or SIGSEGV, which would kill the process (a peer could cause
 * this). These functions return -EFAULT instead. Bytes before the fault may have been copied.
 *
 * On x86-64 a copy makes no system call, except in a thread that blocks SIGBUS or SIGSEGV: the
 * kernel kills a process for a fault whose signal is blocked, so the copy unblocks both signals
 * while it runs. A thread's mask is read at the thread's first copy after a safecopy_setup(), so
 * the library's own threads leave both signals unblocked (thread.h). On other processors every
 * copy is a system call.
 */
#ifndef BASE_SAFECOPY_H
#define BASE_SAFECOPY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Install the handlers that catch faults in the copies below; the call is cheap if they are
 * installed. Call this before the first copy and at each registration of memory, because the
 * application may have installed its own handlers meanwhile. Returns 0 or -errno.
 */
int safecopy_setup(void);
int safecopy(void *dst, const void *src, size_t len);
/* Store 8 bytes by one store, never torn. dst is 8-byte aligned. */
int safecopy_store64(uint64_t *dst, uint64_t value);
/* Load 8 bytes by one load, never torn. src is 8-byte aligned. */
int safecopy_load64(uint64_t *value, const uint64_t *src);
/*
 * One atomic compare-and-swap of the aligned word at p: if the word equals *expected, it becomes
 * `desired`. *expected then gets the previous value in both cases. On every processor the
 * operation is atomic with accesses of all other CPUs. On processors without a fix-up routine,
 * safecopy_guard() catches the fault.
 */
int safecopy_cmpxchg64(uint64_t *p, uint64_t *expected, uint64_t desired);
/* Checks that the byte at p is readable. Returns 0 or -EFAULT. */
int safecopy_probe(const void *p);
/*
 * Call fn(addr, len). A fault on an address of the range ends fn, and the call returns -EFAULT; so
 * fn must hold no lock and no resource while it accesses the range. Returns 0 if there was no
 * fault.
 */
int safecopy_guard(const void *addr, size_t len, void (*fn)(const void *addr, size_t len));

#endif
