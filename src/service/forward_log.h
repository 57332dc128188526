/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * forward_log.h -- forwards librpma's log to the log of base/log.h. Daemons call this at their
 * start.
 */
#ifndef SERVICE_FORWARD_LOG_H
#define SERVICE_FORWARD_LOG_H

#include "base/log.h"

/*
 * Forward messages of this level and above. At LOG_LVL_NOTICE only warnings and errors are
 * forwarded, because librpma's notices are details that the user of a daemon does not need.
 */
void forward_log(enum log_level level);

#endif
