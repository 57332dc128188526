/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.h -- where the daemon's lines go: to standard error until the configuration is known,
 * then to syslog or a file, from the configured level on, together with those of librpma.
 */
#ifndef RPMEMD_JOURNAL_H
#define RPMEMD_JOURNAL_H

#include "base/error.h"
#include "rpmemd/settings.h"

/* Errors and warnings to standard error. */
void journal_begin(void);
/* As configured. ERROR_LOCAL: the file cannot be opened, and lines go on to standard error. */
int journal_open(const struct settings *s, struct error *err);
/* Open the file anew, as it may have been renamed. The old one stays on failure. */
int journal_reopen(struct error *err);
/* Put in front of each line, e.g. the initiator's address. Copied. */
void journal_set_subject(const char *subject);

#endif
