/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * remote.h -- the region and server of the command line, for all commands except serve, and calls
 * of librpmafile whose errors are printed.
 *
 * Functions that return int return CLI_OK, or another exit code after printing the error line.
 */
#ifndef TOOL_REMOTE_H
#define TOOL_REMOTE_H

#include <getopt.h>
#include <librpmafile.h>
#include <stdbool.h>

struct remote_opts {
	char target[352];        /* HOST:PORT, or HOST:PORT:REGION */
	const char *region;      /* the REGION at the end of target, or "" */
	const char *secret_file; /* path of the secret's file; NULL: no secret */
	int timeout_ms;
	bool verbose; /* print the library's log */
	bool json;
};

/* The options of a command, without the options that all commands have: --secret-file, --timeout,
 * --verbose, --json and --help. */
struct remote_command {
	const char *help;
	/* NULL: no further options. take() need not handle --region. */
	const struct option *options;
	int (*take)(int opt, void *arg); /* called with getopt's optarg */
};

/* Parse the command line. Returns CLI_OK, and the operands begin at optind; an exit code; or -1:
 * help was printed. */
int remote_parse(int argc, char **argv, const struct remote_command *command, void *arg,
		 struct remote_opts *opts);
/* Parse the operand HOST[:PORT][:NAME]. A word after the host that is not a number is a name. */
int remote_take_server(const char *text, struct remote_opts *opts);

struct rpma_file_options remote_file_options(const struct remote_opts *opts, uint32_t flags);
/* Print the error of a call of librpmafile with result rc. If rc is 0, print nothing and return
 * CLI_OK. */
int remote_check(int rc);

#endif
