/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h -- sends the library's log to its destination: RPMEM_LOG_LEVEL (0 to 4) and
 * RPMEM_LOG_FILE. */
#ifndef RPMEM_LOG_H
#define RPMEM_LOG_H

/* Apply the present values of the variables. */
void log_open(void);

#endif
