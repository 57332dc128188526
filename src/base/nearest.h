/* SPDX-License-Identifier: BSD-3-Clause */
/* nearest.h -- finds the name that an unknown word of a command line probably means. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Number of characters to insert, remove, replace or exchange with the next one to turn a into b.
 * Only the first 31 characters of longer texts count.
 */
unsigned nearest_distance(const char *a, const char *b);

/* Set .word and .prefix, offer all names, then ask for the text. */
struct nearest {
	const char *word;   /* the unknown word */
	const char *prefix; /* text in front of each name, such as "--" */
	const char *best;   /* the nearest name so far; NULL: no name is near enough */
	unsigned distance;
	char text[80];
};
void nearest_offer(struct nearest *n, const char *name);
/* " (did you mean '--size'?)", or "" if no name is near. */
const char *nearest_hint(struct nearest *n);

/*
 * Does getopt_long(3) read a long option next that the table lacks? Then text is "unrecognized
 * option '--sise' (did you mean '--size'?)". An unambiguous beginning of an option is not unknown.
 */
bool nearest_option_is_unknown(int argc, char **argv, const struct option *options, char *text,
			       size_t size);

#endif
