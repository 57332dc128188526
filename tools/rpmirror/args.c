/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../numbers.h"
#include "base/nearest.h"
#include "out.h"

#define ARGS_TIMEOUT_MS  10000
#define ARGS_SECONDS_MAX (366 * 24 * 3600.0)

const struct args_command *args_command;

static bool args_parse_seconds(const char *text, uint64_t *ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.001) || seconds > ARGS_SECONDS_MAX)
		return false;
	*ms = (uint64_t)(seconds * 1000);
	return true;
}

static bool args_add(struct args_list *list, const char *item)
{
	if (list->count == ARGS_MAX)
		return false;
	list->items[list->count++] = item;
	return true;
}

static bool args_take(const struct args_option *option, const char *value)
{
	switch (option->kind) {
	case ARGS_FLAG:
		*(bool *)option->to = true;
		return true;
	case ARGS_TEXT:
		*(const char **)option->to = value;
		return value[0] != '\0';
	case ARGS_LIST:
		return value[0] && args_add(option->to, value);
	case ARGS_SIZE:
		return number_parse_size(value, option->to);
	case ARGS_COUNT:
		return number_parse(value, 0, UINT32_MAX, option->to);
	case ARGS_SECONDS:
		return args_parse_seconds(value, option->to);
	}
	return false;
}

bool args_parse_value(enum args_kind kind, const char *text, void *to)
{
	return args_take(&(struct args_option){.kind = kind, .to = to}, text);
}

static const struct args_option *args_find(const struct args_option *options, const char *name,
					   size_t len)
{
	for (; options->name; options++)
		if (strlen(options->name) == len && !memcmp(options->name, name, len))
			return options;
	return NULL;
}

static void args_refuse(const char *arg, size_t len, const struct args_option *own,
			const struct args_option *common)
{
	char name[64];
	struct nearest n = {.word = name, .prefix = "--"};

	snprintf(name, sizeof(name), "%.*s", (int)len, arg + 2);
	for (; own->name; own++)
		nearest_offer(&n, own->name);
	for (; common->name; common++)
		nearest_offer(&n, common->name);
	out_usage("there is no option '%s'%s", arg, nearest_hint(&n));
}

/* Parse --name, --name=value or --name value. Returns the number of arguments used, or -1. */
static int args_parse_option(char **argv, const struct args_option *own,
			     const struct args_option *common)
{
	const char *name = argv[0] + 2;
	const char *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	const struct args_option *option = args_find(own, name, len);
	int used = 1;

	option = option ? option : args_find(common, name, len);
	if (!option) {
		args_refuse(argv[0], len, own, common);
		return -1;
	}
	if (option->kind == ARGS_FLAG && value) {
		out_usage("'--%s' takes no value", option->name);
		return -1;
	}
	if (value) {
		value++;
	} else if (option->kind != ARGS_FLAG) {
		value = argv[1];
		used = 2;
	}
	if (option->kind != ARGS_FLAG && !value) {
		out_usage("'%s' needs a value", argv[0]);
		return -1;
	}
	if (!args_take(option, value)) {
		out_usage("'%s' is no value for --%s", value, option->name);
		return -1;
	}
	return used;
}

static int args_help(int *code)
{
	printf("usage: rpmirror %s %s\n%s\n"
	       "  --timeout S     give up after so many seconds (10)\n"
	       "  --json          print JSON, errors as well\n"
	       "  --socket PATH   of rpmirrord (" ARGS_SOCKET ", or $RPMIRROR_SOCKET)\n",
	       args_command->name, args_command->synopsis, args_command->text);
	*code = CODE_DONE;
	return 1;
}

static int args_check(const struct args *args, unsigned min, unsigned max)
{
	if (args->rest.count > max)
		return out_usage("'%s' is one argument too many", args->rest.items[max]);
	if (args->rest.count < min)
		return out_usage("an argument is missing: rpmirror %s %s", args_command->name,
				 args_command->synopsis);
	return CODE_DONE;
}

int args_parse(int argc, char **argv, const struct args_option *options, unsigned min, unsigned max,
	       struct args *args, int *code)
{
	bool help = false;
	const struct args_option common[] = {{"json", ARGS_FLAG, &args->json},
					     {"timeout", ARGS_SECONDS, &args->timeout_ms},
					     {"socket", ARGS_TEXT, &args->socket},
					     {"help", ARGS_FLAG, &help},
					     {0}};
	const char *socket = getenv("RPMIRROR_SOCKET");

	*args = (struct args){.timeout_ms = ARGS_TIMEOUT_MS,
			      .socket = socket && *socket ? socket : ARGS_SOCKET};
	for (int i = 1; i < argc;) {
		int used = 1;

		/* Set JSON before the first error is printed, because that error must be JSON as
		 * well. */
		if (!strcmp(argv[i], "--json"))
			out_set_json(true);
		if (!strncmp(argv[i], "--", 2) && argv[i][2])
			used = args_parse_option(argv + i, options, common);
		else if (!args_add(&args->rest, argv[i]))
			used = -1;
		if (used < 0) {
			*code = CODE_USAGE;
			return -1;
		}
		i += used;
	}
	if (help)
		return args_help(code);
	*code = args_check(args, min, max);
	return *code;
}
