/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward_log.h -- forward librpma's log to the log of base/log.h. Daemons call it at their start.
 */
#ifndef SERVICE_FORWARD_LOG_H
#define SERVICE_FORWARD_LOG_H

#include "base/log.h"

/*
 * Forward messages from that level on. librpma's notices are details for the user of a daemon, so
 * at LOG_LVL_NOTICE only warnings and errors are forwarded.
 */
void forward_log(enum log_level level);

#endif
