/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * manager.h -- reports to the service manager that started this daemon (sd_notify(3)). Without
 * NOTIFY_SOCKET there is no manager, and the calls do nothing.
 *
 * A report is one datagram to a socket. So no daemon links with libsystemd, and with the libraries
 * for compression and encryption that libsystemd needs.
 */
#ifndef SERVICE_MANAGER_H
#define SERVICE_MANAGER_H

/*
 * Take NOTIFY_SOCKET from the environment, so that programs that this process starts do not report
 * as this process. Call this before there are threads.
 */
void manager_begin(void);

/* Report that requests are served from now on; `systemctl status` shows the text. */
void manager_ready(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Replace the text of manager_ready(). */
void manager_status(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The configuration is read again, until the next manager_reloaded(). */
void manager_reloading(void);
void manager_reloaded(void);
/* The end has begun. */
void manager_stopping(void);

#endif
