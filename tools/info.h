/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * info.h -- the three reports of `rpma info`. Each function prints text, one JSON object, or an
 * error line, and returns a cli_exit code.
 */
#ifndef TOOL_INFO_H
#define TOOL_INFO_H

#include <stdbool.h>

#include "remote.h"

/* Print providers, devices, and capabilities towards another end of the same kind. */
int info_here(bool json);
/* Print the durability of a file when it is served. If path is a folder, print the durability of a
 * file that would be created in the folder. */
int info_path(const char *path, bool json);
/* Print a server's capabilities and its regions. */
int info_server(const struct remote_opts *opts);

/* Write the server's metrics: to a file for node_exporter, or to standard output if textfile is
 * NULL. A missing answer is a metric, too; then the exit code is that of the failure. */
int info_metrics(const struct remote_opts *opts, const char *textfile);
/* The exit codes of a monitoring plugin; this check gives no warning. */
enum info_state { INFO_OK = 0, INFO_CRITICAL = 2, INFO_UNKNOWN = 3 };
/* Print one line in the form of a monitoring plugin, and return its exit code. */
int info_check(const struct remote_opts *opts);

/* Print the names of RPMA_CAP_* bits: as a line, or as the members of a JSON list. */
void info_print_capabilities(uint32_t caps, bool json);

#endif
