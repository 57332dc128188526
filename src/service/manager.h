/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * manager.h -- reports to the service manager that started this daemon (sd_notify(3)). If
 * NOTIFY_SOCKET is not set, there is no manager, and the calls do nothing.
 *
 * A report is one datagram to a socket. So a daemon needs neither libsystemd nor the libraries for
 * compression and encryption on which libsystemd depends.
 */
#ifndef SERVICE_MANAGER_H
#define SERVICE_MANAGER_H

/*
 * Read NOTIFY_SOCKET and remove it from the environment, so that programs that this process starts
 * do not report as this process. Call this before the process starts threads.
 */
void manager_begin(void);

/* Report that the daemon serves requests from now on; `systemctl status` shows the text. */
void manager_ready(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Replace the text of manager_ready(). */
void manager_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Report that the daemon reads its configuration again, until it calls manager_reloaded(). */
void manager_reloading(void);
void manager_reloaded(void);
/* Report that the daemon has begun to end. */
void manager_stopping(void);

#endif
