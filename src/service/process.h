/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h -- what a serving program sets up for its process, before it has threads. */
#ifndef SERVICE_PROCESS_H
#define SERVICE_PROCESS_H

/* Block these signals, also in threads that are started later. A descriptor that reports them
 * (signalfd(2)), or -1 with errno set. A closed pipe or socket and a limit on file sizes are errors
 * of calls from now on, and end no process. */
int process_take_signals(const int *signals, unsigned count);
/* As many descriptors as the process may have. */
void process_raise_limit(void);

#endif
