/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * restore.h -- unreadable pages of this host's copy get their content from another member.
 *
 * A thread that touches such a page gets SIGBUS. The handler (restore_fault.c) leaves a request and
 * sleeps. The restore thread reads the page from an in-sync member, over a connection for that
 * alone which exists beforehand (restore_lane.c), and writes it to the file (restore_page.c); then
 * the access is repeated. For a page that has lost no bytes neither of them allocates memory or
 * takes a lock, as the interrupted thread may hold any lock.
 *
 * The library's own accesses to the file's mappings end where they fault (restore_try()), and
 * continue after the page was restored.
 */
#ifndef MIRROR_RESTORE_H
#define MIRROR_RESTORE_H

#include <poll.h>

#include "mirror/set.h"

/* With the set, before its thread starts; 0 or an RPMIRROR_E_*. */
int restore_open(struct rpmirror *m);
/* Locked. The copy is given up: when this returns no thread writes to the file any more. */
void restore_freeze(struct rpmirror *m);
/* Not under the lock: it waits for the thread. */
void restore_close(struct rpmirror *m);
/* End the thread and the handlers, and close nothing (files.h). */
void restore_leave(struct rpmirror *m);

/* ---- the background thread, locked ---- */

/* Make and close connections to members that have all flushes. */
void restore_step(struct rpmirror *m, uint64_t now_ms);
unsigned restore_fds(const struct rpmirror *m, struct pollfd *fds); /* two a member */
/* From which members may be read now. */
void restore_publish(struct rpmirror *m);

/* ---- the library's own accesses ---- */

/* Call fn(arg). False: it ended at a fault in one of the set's mappings, at *offset. fn must
 * hold nothing there that it would have to release. */
bool restore_try(struct rpmirror *m, void (*fn)(void *arg), void *arg, uint64_t *offset);
/* The same, for a store: a page that the application has write-protected ends it as well, with
 * an *offset of UINT64_MAX. */
bool restore_try_store(struct rpmirror *m, void (*fn)(void *arg), void *arg, uint64_t *offset);
/* In the handler of another signal: end the thread's restore_try(), with an *offset of
 * UINT64_MAX. False: it is in none. */
struct fault;
bool restore_end_try(const struct rpmirror *m, struct fault *fault);
/* Locked, with gaps. The page at offset could not be accessed: wait until it is restored. False:
 * it cannot be, and this host's copy has failed. */
bool restore_wait(struct rpmirror *m, uint64_t offset);
/* Locked. Make sure that this memory of a mapping of the set can be read. False: it cannot be,
 * and the copy has failed. */
bool restore_touch(struct rpmirror *m, const uint8_t *at, uint64_t len);
/* Locked. Have the page restored later, without waiting for it. */
void restore_later(struct rpmirror *m, uint64_t offset);

/* ---- lost bytes ---- */

/* Locked. Take over the pages restored since, for rpmirror_get_error() and as events. */
void restore_collect(struct rpmirror *m);
/* Locked, with gaps. The write-back of a restored page runs beside others, and may get their
 * error: wait for its end, and take over its result. */
void restore_await_write(struct rpmirror *m);
/* Locked. RPMIRROR_E_MEDIUM until the application has taken the errors of ranges that lost its
 * stores; else 0. */
int restore_check(struct rpmirror *m);
/* True: the restore thread has asked that no flush begins now. */
bool restore_holds_flushes(const struct rpmirror *m);

#endif
