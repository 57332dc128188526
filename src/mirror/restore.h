/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * restore.h -- restores unreadable pages of this host's copy with their content at another member.
 *
 * A thread that touches such a page gets SIGBUS. The handler (restore_fault.c) leaves a request and
 * sleeps. The restore thread reads the page from an in-sync member, over a separate connection that
 * was made beforehand (restore_lane.c). The thread writes the page to the file (restore_page.c),
 * and then the access is repeated. If the page has lost no bytes, neither the handler nor the
 * restore thread allocates memory or takes a lock, because the interrupted thread may hold any
 * lock.
 *
 * The library's own accesses to the file's mappings end where they fault (restore_try()), and
 * continue after the page was restored.
 */
#ifndef MIRROR_RESTORE_H
#define MIRROR_RESTORE_H

#include <poll.h>

#include "mirror/set.h"

/* Make m->restore, with the handlers and the restore thread. Call this when the set is opened,
 * before the set's thread starts. Returns 0 or an RPMIRROR_E_*. */
int restore_open(struct rpmirror *m);
/* Give up the copy: on return no thread writes to the file any more. Called with the set's lock. */
void restore_freeze(struct rpmirror *m);
/* End the handlers and the thread, close the connections, and free m->restore. The caller does not
 * hold the set's lock, because the call waits for the thread. */
void restore_close(struct rpmirror *m);
/* End the thread and the handlers, without closing descriptors (files.h). */
void restore_leave(struct rpmirror *m);

/* ---- for the background thread, with the set's lock ---- */

/* Make and close connections to members that have all flushes. */
void restore_step(struct rpmirror *m, uint64_t now_ms);
/* Store the descriptors to wait for in fds, at most two for each member. Returns their number. */
unsigned restore_fds(const struct rpmirror *m, struct pollfd *fds);
/* Publish the members from which bytes may be read now. */
void restore_publish(struct rpmirror *m);

/* ---- the library's own accesses ---- */

/* Call fn(arg). Returns false if a fault in one of the set's mappings, at *offset, stopped fn.
 * Where fn may fault, fn must hold nothing that has to be released. */
bool restore_try(struct rpmirror *m, void (*fn)(void *arg), void *arg, uint64_t *offset);
/* Like restore_try(), for a store: a page that the application has write-protected ends fn as
 * well, with an *offset of UINT64_MAX. */
bool restore_try_store(struct rpmirror *m, void (*fn)(void *arg), void *arg, uint64_t *offset);
/* In the handler of another signal: make the thread's restore_try() return, with UINT64_MAX in
 * *offset. Returns false if the thread is not in a restore_try(). */
struct fault;
bool restore_end_try(const struct rpmirror *m, struct fault *fault);
/* The page at offset could not be accessed: wait until it is restored. Returns false if it cannot
 * be restored; this host's copy has then failed. Called with the set's lock, which is released
 * meanwhile. */
bool restore_wait(struct rpmirror *m, uint64_t offset);
/* Make sure that this memory of a mapping of the set can be read. Returns false if it cannot be
 * read; the copy has then failed. Called with the set's lock. */
bool restore_touch(struct rpmirror *m, const uint8_t *at, uint64_t len);
/* Have the page restored later, without waiting for it. Called with the set's lock. */
void restore_later(struct rpmirror *m, uint64_t offset);

/* ---- lost bytes ---- */

/* Take over the pages that were restored since the last call, for rpmirror_get_error() and as
 * events. Called with the set's lock. */
void restore_collect(struct rpmirror *m);
/* Wait until the write-back of a restored page has finished, and take over its result. This
 * write-back runs at the same time as others, and may get their error. Called with the set's lock,
 * which is released meanwhile. */
void restore_await_write(struct rpmirror *m);
/* Returns RPMIRROR_E_MEDIUM until the application has taken the errors of ranges that lost its
 * stores; else 0. Called with the set's lock. */
int restore_check(struct rpmirror *m);
/* Returns true if the restore thread has requested that no flush begins now. */
bool restore_holds_flushes(const struct rpmirror *m);

#endif
