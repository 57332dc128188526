/* SPDX-License-Identifier: BSD-3-Clause */
/* log_prefix.h -- puts the level in front of a line, for systemd's journal. */
#ifndef BASE_LOG_PREFIX_H
#define BASE_LOG_PREFIX_H

#include "base/log.h"

/*
 * Returns "<3>" for an error (sd-daemon(3)) if standard error is connected to the journal; else "".
 * The function compares JOURNAL_STREAM with the descriptor, because a child may have inherited the
 * variable but not the descriptor. Thread-safe.
 */
const char *log_prefix(enum log_level level);

#endif
