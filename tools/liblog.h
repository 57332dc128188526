/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liblog.h -- where librpma's log goes.
 */
#ifndef TOOL_LIBLOG_H
#define TOOL_LIBLOG_H

#include <stdbool.h>

/* From now on nothing of librpma's goes to syslog; with verbose, lines from NOTICE on go to
 * stderr. */
void liblog_init(bool verbose);

#endif
