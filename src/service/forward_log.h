/* SPDX-License-Identifier: BSD-3-Clause */
/* forward_log.h -- what librpma logs goes into the log
 * of base/log.h. For daemons, at their start. */
#ifndef SERVICE_FORWARD_LOG_H
#define SERVICE_FORWARD_LOG_H

#include "base/log.h"

/* From that level on; librpma's notices are details for the user of a daemon: at LOG_LVL_NOTICE its
 * warnings are the least. */
void forward_log(enum log_level level);

#endif
