/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve.h -- runs a server (regions/server.h) from the command line.
 */
#ifndef TOOL_SERVE_H
#define TOOL_SERVE_H

#include <stdbool.h>

#include "regions/server.h"

struct serve_opts {
	struct server_opts server;
	struct server_file files[SERVER_REGIONS_MAX];
	char names[SERVER_REGIONS_MAX][HELLO_NAME_MAX + 1];
	unsigned name_count;
	const char *secret_file;
	struct secret secret; /* content of the secret's file */
	bool json;
};

/* serve_opts.c: parses the command line, with the results of copy_parse(). *opts must not move
 * afterwards. */
int serve_parse(int argc, char **argv, struct serve_opts *opts);

/* serve_stats.c: prints the counters of the connections to stdout. */
void serve_print_counters(const struct server *server, bool json);

#endif
