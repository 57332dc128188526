/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apart.h -- threads with a descriptor table of their own.
 *
 * To close any descriptor of a file drops the POSIX locks that the process holds on it: fcntl(2)
 * locks belong to a descriptor table. Hence files of the application are opened and closed only in
 * threads whose table is not the application's.
 */
#ifndef PERSIST_APART_H
#define PERSIST_APART_H

#include <pthread.h>
#include <stdbool.h>

/* A joinable thread that takes no signals. 0 or -errno. */
int apart_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);
/*
 * The first thing such a thread does. Its table is empty then: what the application closes stays
 * closed. False: the table is still the application's, so nothing must be opened.
 */
bool apart_enter(const char *thread_name);

#endif
