/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h -- parses the options and arguments of a command. Every command has --json, --timeout,
 * --socket and --help. */
#ifndef RPMIRROR_ARGS_H
#define RPMIRROR_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define ARGS_MAX 32
/* default path; RPMIRROR_SOCKET in the environment overrides it */
#define ARGS_SOCKET "/run/rpmirror/rpmirrord.socket"

struct args_list {
	const char *items[ARGS_MAX];
	unsigned count;
};

enum args_kind {
	ARGS_FLAG,   /* sets a bool */
	ARGS_TEXT,   /* sets a const char *, not empty */
	ARGS_LIST,   /* appends to a struct args_list; the option may be repeated */
	ARGS_SIZE,   /* sets a uint64_t; the text may have a unit */
	ARGS_COUNT,  /* sets a uint64_t */
	ARGS_SECONDS /* sets a uint64_t in milliseconds */
};

struct args_option {
	const char *name;
	enum args_kind kind;
	void *to;
};

struct args {
	struct args_list rest; /* arguments that are not options */
	bool json;
	uint64_t timeout_ms;
	const char *socket;
};

/* Parse one value of that kind, which is not FLAG or LIST. */
bool args_parse_value(enum args_kind kind, const char *text, void *to);

/* A command: its text for --help, and its function. args_command points to the running command. */
struct args_command {
	const char *name, *synopsis, *text;
	int (*run)(int argc, char **argv);
};

extern const struct args_command *args_command;

/* Parse the arguments. A NULL name ends `options`. At least min and at most max further arguments
 * are permitted. Returns 0, or another value if the command must end with *code (after --help, or
 * after a printed error). */
int args_parse(int argc, char **argv, const struct args_option *options, unsigned min, unsigned max,
	       struct args *args, int *code);

#endif
