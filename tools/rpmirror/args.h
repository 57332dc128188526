/* SPDX-License-Identifier: BSD-3-Clause */
/* args.h -- options and arguments of a command; --json, --timeout, --socket and --help are
 * those of every command. */
#ifndef RPMIRROR_ARGS_H
#define RPMIRROR_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define ARGS_MAX    32
#define ARGS_SOCKET "/run/rpmirror/rpmirrord.socket" /* or RPMIRROR_SOCKET */

struct args_list {
	const char *items[ARGS_MAX];
	unsigned count;
};

enum args_kind {
	ARGS_FLAG,   /* bool */
	ARGS_TEXT,   /* const char *, not empty */
	ARGS_LIST,   /* struct args_list; may be repeated */
	ARGS_SIZE,   /* uint64_t, with units */
	ARGS_COUNT,  /* uint64_t */
	ARGS_SECONDS /* uint64_t, milliseconds */
};

struct args_option {
	const char *name;
	enum args_kind kind;
	void *to;
};

struct args {
	struct args_list rest; /* what is no option */
	bool json;
	uint64_t timeout_ms;
	const char *socket;
};

/* One value, as of an option of that kind; not of FLAG and LIST. */
bool args_parse_value(enum args_kind kind, const char *text, void *to);

/* A command: what --help prints of it, and its function. args_command is the one that runs. */
struct args_command {
	const char *name, *synopsis, *text;
	int (*run)(int argc, char **argv);
};

extern const struct args_command *args_command;

/* options: ended by a NULL name. At least min and at most max further arguments. 0: go on; else the
 * command ends with *code (after --help, or an error that was printed). */
int args_parse(int argc, char **argv, const struct args_option *options, unsigned min, unsigned max,
	       struct args *args, int *code);

#endif
