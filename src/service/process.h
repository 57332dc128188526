/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h -- sets up the process of a server, before it has threads. */
#ifndef SERVICE_PROCESS_H
#define SERVICE_PROCESS_H

/*
 * Block these signals, also in threads that are started later. A descriptor that reports them
 * (signalfd(2)), or -1 with errno set. From now on a closed pipe or socket, and a limit on file
 * sizes, make calls fail; they do not end the process.
 */
int process_take_signals(const int *signals, unsigned count);
/* Raise the limit of descriptors as far as permitted. */
void process_raise_limit(void);

#endif
