/* SPDX-License-Identifier: BSD-3-Clause */
/* cli.h -- declarations shared by all subcommands: exit codes, the error line, numbers with
 * units. */
#ifndef TOOL_CLI_H
#define TOOL_CLI_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "numbers.h"

/* rpma(1) documents these codes; scripts rely on them. */
enum cli_exit {
	CLI_OK = 0,
	CLI_TRANSFER = 1, /* the connection or a flush failed during the transfer */
	CLI_USAGE = 2,    /* the command line is wrong */
	CLI_FILE = 3,     /* a local file, disk or address cannot be used */
	CLI_REACH = 4,    /* the server cannot be reached */
	CLI_REFUSED = 5,  /* the server, or the size of its region, does not permit the request */
};

/* Set the name that begins every error line, such as "rpma put". */
void cli_begin(const char *name);
/* Print "<name>: <text>" on stderr and return code. */
int cli_fail(enum cli_exit code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Set the text at the end of each later error line, such as the progress of a copy; "": no text. */
void cli_set_tail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print an error of the libraries, followed by a hint ("": none). Returns the exit code. */
int cli_report(const struct error *err, const char *hint);
/*
 * Stop librpma's log to syslog. If verbose, lines of NOTICE and above are written to stderr, with
 * the time. Otherwise stderr gets only errors of the device's own threads, because rpma_err_last()
 * has the errors of calls.
 */
void cli_log_init(bool verbose);
/* Print a line of the log. The line begins with its level if systemd's journal reads it
 * (base/log_prefix.h). */
void cli_note(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Print an error with a reference to --help, and return CLI_USAGE; also for getopt's '?' and
 * ':'. */
int cli_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Parse the options one by one. take() gets each result of getopt_long(3) except 'h', which prints
 * help. An option whose val is at most 'z' also has a short form. Returns CLI_OK, and the operands
 * begin at optind; an exit code of take(); or -1: help was printed.
 */
int cli_options(int argc, char **argv, const struct option *options, const char *help,
		int (*take)(int opt, void *arg), void *arg);

/* Print to stdout `before`, such as a member's name, and then text as a JSON string in quotes. */
void cli_json_string(const char *before, const char *text);

#endif
