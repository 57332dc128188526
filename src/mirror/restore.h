/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * restore.h -- pages of this host's copy that cannot be read get their content from another member.
 *
 * Who touches such a page gets SIGBUS. The handler (restore_fault.c) leaves a request and sleeps.
 * The restore thread reads the page from an in-sync member, over a connection for that alone which
 * is there beforehand (restore_lane.c), and writes it to the file (restore_page.c); then the access
 * is repeated. Neither allocates memory or takes a lock for a page of which nothing is lost, as the
 * thread that was interrupted may hold any.
 *
 * The library's own accesses to the file's mappings end where they fault (restore_try()), and go on
 * when the page was restored.
 */
#ifndef MIRROR_RESTORE_H
#define MIRROR_RESTORE_H

#include <poll.h>

#include "mirror/set.h"

/* With the set, before its thread starts; 0 or an RPMIRROR_E_*. */
int restore_open(struct rpmirror *m);
/* Locked. When this returns the file is not written to any more: the copy is given up. */
void restore_freeze(struct rpmirror *m);
/* Not under the lock: the thread is waited for. */
void restore_close(struct rpmirror *m);
/* End the thread and the handlers, and close nothing (files.h). */
void restore_leave(struct rpmirror *m);

/* ---- the background thread, locked ---- */

/* Connections to members that have all flushes. */
void restore_step(struct rpmirror *m, uint64_t now_ms);
unsigned restore_fds(const struct rpmirror *m, struct pollfd *fds); /* two a member */
/* From which members may be read now. */
void restore_publish(struct rpmirror *m);

/* ---- the library's own accesses ---- */

/* Call fn(arg); false: it ended at a fault in one of the set's mappings, *offset is where. fn holds
 * nothing there that it would have to release. */
bool restore_try(struct rpmirror *m, void (*fn)(void *arg), void *arg, uint64_t *offset);
/* The same, of a store: a page that the application has forbidden to be written ends it as well,
 * with an *offset of UINT64_MAX. */
bool restore_try_store(struct rpmirror *m, void (*fn)(void *arg), void *arg, uint64_t *offset);
/* In the handler of another signal: the thread's restore_try() ends, with an *offset of UINT64_MAX.
 * False: it is in none. */
struct fault;
bool restore_end_try(const struct rpmirror *m, struct fault *fault);
/* Locked, but not all the time. The page at offset could not be accessed. False: it cannot be
 * restored, and this host's copy has failed. */
bool restore_wait(struct rpmirror *m, uint64_t offset);
/* Locked. Make sure that this memory of a mapping of the set can be read. False: likewise. */
bool restore_touch(struct rpmirror *m, const uint8_t *at, uint64_t len);
/* Locked. Have it restored some time; nobody waits for it. */
void restore_later(struct rpmirror *m, uint64_t offset);

/* ---- what was lost ---- */

/* Locked. Take over what was restored since, for rpmirror_get_error() and as events. */
void restore_collect(struct rpmirror *m);
/* Locked, with gaps. A write-back of what is restored runs beside others, and may get their error:
 * wait for its end, and take over what came of it. */
void restore_await_write(struct rpmirror *m);
/* Locked. RPMIRROR_E_MEDIUM, as long as the application has not taken the errors of ranges that
 * lost what it stored; else 0. */
int restore_check(struct rpmirror *m);
/* A thread of the restored set must not begin a flush now. */
bool restore_holds_flushes(const struct rpmirror *m);

#endif
