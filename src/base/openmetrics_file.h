/* SPDX-License-Identifier: BSD-3-Clause */
/* openmetrics_file.h -- metrics in a file for the textfile collector, and on standard output. */
#ifndef BASE_OPENMETRICS_FILE_H
#define BASE_OPENMETRICS_FILE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/openmetrics.h"

/* Replace the file: a reader finds the former text or this one, never a part. Every user may read it.
 * ERROR_LOCAL. */
int openmetrics_save(const struct openmetrics *om, const char *path, struct error *err);

/* The room of the file system that holds the path, as statvfs(2) counts it for users without
 * privileges. false: it cannot be asked. */
bool openmetrics_room(const char *path, double *avail, double *size);

#endif
