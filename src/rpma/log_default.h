/* SPDX-License-Identifier: BSD-3-Clause */
/* log_default.h -- the default log function, which is used until the program sets another one. */
#ifndef RPMA_LOG_DEFAULT_H
#define RPMA_LOG_DEFAULT_H

#include <time.h>

#include "librpma.h"

/* Writes all messages to syslog, and the messages from the AUX threshold on to stderr, too. */
rpma_log_function rpma_log_default_function;

/* English names of the months, independent of the program's locale. */
extern const char *const log_month[12];

/* Send one message to syslog as "rpma[pid]", facility local7, without the newline at its end. */
void log_syslog(enum rpma_log_level level, const char *text);

#endif
