/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/optfault.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

/* Returns the option whose name is the first len characters, or NULL. */
static const struct option *optfault_find(const struct option *options, const char *name,
					  size_t len)
{
	for (; options->name; options++)
		if (!strncmp(options->name, name, len))
			return options;
	return NULL;
}

/*
 * Is the invalid option the long one in arg? If the invalid option is one of several letters, as in
 * "-xk", arg is the argument before the letters, which may be a correct long option. optopt is then
 * the letter; otherwise it is 0 or the value of the long option.
 */
static bool optfault_is_long(int c, const char *arg, const struct option *options)
{
	const struct option *found;

	if (strncmp(arg, "--", 2) != 0)
		return false;
	found = optfault_find(options, arg + 2, strcspn(arg + 2, "="));
	return !optopt || c == ':' || (strchr(arg, '=') && found && found->val == optopt);
}

static void optfault_explain_unknown(const char *name, const struct option *options, char *text,
				     size_t size)
{
	struct nearest n = {.word = name, .prefix = "--"};

	for (; options->name; options++)
		nearest_offer(&n, options->name);
	snprintf(text, size, "unrecognized option '--%s'%s", name, nearest_hint(&n));
}

static void optfault_explain_long(int c, const char *name, const struct option *options, char *text,
				  size_t size)
{
	if (c == ':')
		snprintf(text, size, "option '--%s' needs a value", name);
	else if (optopt)
		snprintf(text, size, "option '--%s' takes no value", name);
	else if (optfault_find(options, name, strlen(name)))
		snprintf(text, size, "option '--%s' is ambiguous", name);
	else
		optfault_explain_unknown(name, options, text, size);
}

void optfault_explain(int c, char *const *argv, const struct option *options, char *text,
		      size_t size)
{
	const char *arg = argv[optind - 1];
	char name[64];

	if (optfault_is_long(c, arg, options)) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
		optfault_explain_long(c, name, options, text, size);
	} else if (c == ':') {
		snprintf(text, size, "option '-%c' needs a value", optopt);
	} else {
		snprintf(text, size, "unrecognized option '-%c'", optopt);
	}
}
