/* SPDX-License-Identifier: BSD-3-Clause */
/* openmetrics_file.h -- writes metrics to a file for the textfile collector, or to standard
 * output. */
#ifndef BASE_OPENMETRICS_FILE_H
#define BASE_OPENMETRICS_FILE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/openmetrics.h"

/* Replace the file in one step: a reader finds either the former or the new text, never a part.
 * Every user may read the file. A failure is ERROR_LOCAL. */
int openmetrics_save(const struct openmetrics *om, const char *path, struct error *err);

/* Free and total bytes of the path's file system, as statvfs(2) counts them for users without
 * privileges. Returns false if statvfs(2) fails. */
bool openmetrics_room(const char *path, double *avail, double *size);

#endif
