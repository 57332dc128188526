/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward_log.h -- forwards librpma's log to the log of base/log.h. Daemons call this at their
 * start.
 */
#ifndef SERVICE_FORWARD_LOG_H
#define SERVICE_FORWARD_LOG_H

#include "base/log.h"

/*
 * Forward messages from that level on. At LOG_LVL_NOTICE forward only warnings and errors, because
 * librpma's notices are details for the user of a daemon.
 */
void forward_log(enum log_level level);

#endif
