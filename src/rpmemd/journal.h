/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.h -- the daemon's log: standard error until the configuration is read, then syslog or a
 * file. The log contains the messages of the configured level and above, including those of
 * librpma.
 */
#ifndef RPMEMD_JOURNAL_H
#define RPMEMD_JOURNAL_H

#include "base/error.h"
#include "rpmemd/settings.h"

/* Write errors and warnings to standard error. */
void journal_begin(void);
/*
 * Open the configured log. ERROR_LOCAL: the file cannot be opened, and lines are still written to
 * standard error.
 */
int journal_open(const struct settings *s, struct error *err);
/* Open the log file again after it was renamed. On failure the old file stays open. */
int journal_reopen(struct error *err);
/* Set a text that begins each line, for instance the initiator's address. The call copies the
 * text. */
void journal_set_subject(const char *subject);

#endif
