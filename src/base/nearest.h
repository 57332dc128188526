/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.h -- finds the name that an unknown word of a command line probably means. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Number of edits that turn a into b. An edit inserts, removes or replaces a character, or
 * exchanges two neighbours. Only the first 31 characters of longer texts count.
 */
unsigned nearest_distance(const char *a, const char *b);

/* Set .word and .prefix, offer each name to nearest_offer(), then call nearest_hint() for the
 * text. */
struct nearest {
	const char *word;   /* the unknown word */
	const char *prefix; /* text in front of each name, such as "--" */
	const char *best;   /* the nearest name so far; NULL: no name is near enough */
	unsigned distance;
	char text[80];
};
void nearest_offer(struct nearest *n, const char *name);
/* Returns " (did you mean '--size'?)", or "" if no name is near. */
const char *nearest_hint(struct nearest *n);

/*
 * Returns true if the next argument that getopt_long(3) reads is a long option that the table
 * lacks. Then text is "unrecognized option '--sise' (did you mean '--size'?)". An unambiguous
 * prefix of an option counts as an option of the table.
 */
bool nearest_option_is_unknown(int argc, char **argv, const struct option *options, char *text,
			       size_t size);

#endif
