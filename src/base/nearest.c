/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#define NEAREST_CHARS 31
/* Permit one error for every three characters: "stauts" is near "status", but no name is near
 * "fly". */
#define NEAREST_CHARS_PER_ERROR 3

static unsigned nearest_min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned nearest_distance(const char *a, const char *b)
{
	/* d[i][j]: the distance between the first i characters of a and the first j of b */
	unsigned d[NEAREST_CHARS + 1][NEAREST_CHARS + 1];
	size_t a_len = strnlen(a, NEAREST_CHARS), b_len = strnlen(b, NEAREST_CHARS);

	for (size_t i = 0; i <= a_len; i++)
		d[i][0] = (unsigned)i;
	for (size_t j = 0; j <= b_len; j++)
		d[0][j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++)
		for (size_t j = 1; j <= b_len; j++) {
			d[i][j] = nearest_min(nearest_min(d[i - 1][j], d[i][j - 1]) + 1,
					      d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = nearest_min(d[i][j], d[i - 2][j - 2] + 1);
		}
	return d[a_len][b_len];
}

void nearest_offer(struct nearest *n, const char *name)
{
	unsigned distance = nearest_distance(n->word, name);
	size_t errors = strlen(name) / NEAREST_CHARS_PER_ERROR;

	if (distance > (errors ? errors : 1) || distance >= strlen(name) ||
	    (n->best && distance >= n->distance))
		return;
	n->best = name;
	n->distance = distance;
}

const char *nearest_hint(struct nearest *n)
{
	n->text[0] = '\0';
	if (n->best)
		snprintf(n->text, sizeof(n->text), " (did you mean '%s%.40s'?)", n->prefix,
			 n->best);
	return n->text;
}

/* Returns the argument that getopt_long() reads next. getopt_long() skips operands and ends at
 * "--". */
static const char *nearest_next_option(int argc, char **argv)
{
	for (int i = optind; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (argv[i][0] == '-' && argv[i][1])
			return argv[i];
	return NULL;
}

bool nearest_option_is_unknown(int argc, char **argv, const struct option *options, char *text,
			       size_t size)
{
	const char *arg = nearest_next_option(argc, argv);
	char name[64];
	struct nearest n = {.word = name, .prefix = "--"};
	size_t len;

	if (!arg || strncmp(arg, "--", 2) != 0)
		return false;
	len = strcspn(arg + 2, "=");
	snprintf(name, sizeof(name), "%.*s", (int)len, arg + 2);
	for (; options->name; options++) {
		if (!strncmp(options->name, arg + 2, len))
			return false;
		nearest_offer(&n, options->name);
	}
	snprintf(text, size, "unrecognized option '%s'%s", arg, nearest_hint(&n));
	return true;
}
