/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h -- sets up the process of a server, before it has threads. */
#ifndef SERVICE_PROCESS_H
#define SERVICE_PROCESS_H

/*
 * Block these signals, also in threads that start later. Returns a descriptor that reports the
 * signals (signalfd(2)), or -1 with errno. After this call a write to a closed pipe or socket, or
 * beyond the limit on file sizes, returns an error; no signal ends the process.
 */
int process_take_signals(const int *signals, unsigned count);
/* Raise the limit on open descriptors as far as permitted. */
void process_raise_limit(void);

#endif
