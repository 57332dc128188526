/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli.h -- what every subcommand shares: exit codes, the one error line, numbers with units.
 */
#ifndef TOOL_CLI_H
#define TOOL_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "numbers.h"

/* Documented in rpma(1); scripts rely on them. */
enum cli_exit {
	CLI_OK = 0,
	CLI_TRANSFER = 1, /* the connection or a flush failed on the way */
	CLI_USAGE = 2,    /* the command line is wrong */
	CLI_FILE = 3,     /* a local file, disk or address cannot be used */
	CLI_REACH = 4,    /* the server cannot be reached */
	CLI_REFUSED = 5,  /* the server, or the size of its region, does not permit it */
};

/* The name in front of every error line, e.g. "rpma put". */
void cli_begin(const char *name);
/* Print "<name>: <text>" on stderr and return code. */
int cli_fail(enum cli_exit code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* What every failure says at the end of its line from
 * now on, such as how far it came; "" ends it. */
void cli_set_tail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print what a room of the libraries reports, with a hint behind it ("": none). The exit code. */
int cli_report(const struct error *err, const char *hint);
/*
 * From now on nothing of librpma's log goes to syslog. With verbose, lines from NOTICE on go to
 * stderr, and each line of the log has the time; without, errors of the device's own threads, as
 * those of calls are in rpma_err_last().
 */
void cli_log_init(bool verbose);
/* A line of the log. The level counts where the journal reads it (base/log_prefix.h). */
void cli_note(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* CLI_USAGE with a pointer to --help; for getopt's '?' and ':' too. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Take the options one by one: take() gets what getopt_long(3) returns, but 'h', which prints help.
 * A value up to 'z' is a short option, too. CLI_OK, and the operands begin at optind; an exit code
 * of take(); or -1: help was printed.
 */
int cli_options(int argc, char **argv, const struct option *options, const char *help,
		int (*take)(int opt, void *arg), void *arg);

/* To stdout: what stands before it, such as a member's name, and a JSON string with its quotes. */
void cli_json_string(const char *before, const char *text);

#endif
