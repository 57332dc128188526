/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h -- where the library's lines go: RPMEM_LOG_LEVEL (0 to 4) and RPMEM_LOG_FILE. */
#ifndef RPMEM_LOG_H
#define RPMEM_LOG_H

/* As the variables are now. */
void log_open(void);

#endif
