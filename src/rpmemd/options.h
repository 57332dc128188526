/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h -- parses the command line (rpmemd(1)): the task, and settings that override those of
 * the configuration files.
 */
#ifndef RPMEMD_OPTIONS_H
#define RPMEMD_OPTIONS_H

#include "rpmemd/settings.h"

#define OPTIONS_SET_MAX     64
#define OPTIONS_WORKER_WORD "serve-connection"

enum options_task {
	OPTIONS_CONTROL, /* serve one pool over standard input and output */
	OPTIONS_REMOVE,
	OPTIONS_LISTEN,
	OPTIONS_METRICS, /* print metrics; with --listen, also metrics of the listening service */
	/* internal: like CONTROL, for a connection that a listening daemon has accepted */
	OPTIONS_WORKER,
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

struct options {
	enum options_task task;
	const char *config;     /* path of the configuration file; NULL: the usual files */
	const char *remove_set; /* name of the pool set to remove */
	bool force, pool_set;   /* options of REMOVE */
	bool listens;           /* --listen was given */
	const char *textfile;   /* METRICS: path of the file to write; NULL: standard output */
	/* Keys and values of the command line: texts of argv, in the order of argv. */
	struct {
		const char *key, *value;
	} set[OPTIONS_SET_MAX];
	unsigned set_count;
};

/* Parse the command line. ERROR_ARGUMENT: the command line is wrong. */
int options_parse(struct options *opts, int argc, char *const *argv, struct error *err);
/* Apply the keys and values. Returns 0, or the result of settings_set(). */
int options_apply(const struct options *opts, struct settings *s, struct error *err);

extern const char options_usage[], options_help[];

#endif
