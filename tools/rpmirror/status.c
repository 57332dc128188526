/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror status: prints a short tree, JSON, metrics, a line for monitoring, or the effect of a
 * loss. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/openmetrics_file.h"
#include "base/text.h"
#include "commands.h"
#include "metrics.h"
#include "monitor.h"
#include "show.h"
#include "survive.h"

/* Parses a list of names such as "a,b". */
static int status_parse_lost(const json_t *set, const char *names, struct survive_lost *lost)
{
	char text[1024], *save, *name;

	*lost = (struct survive_lost){0};
	snprintf(text, sizeof(text), "%s", names);
	for (name = strtok_r(text, ",", &save); name; name = strtok_r(NULL, ",", &save))
		if (!survive_add_lost(set, name, lost))
			return out_fail(
				CODE_CONFIG, NULL,
				"set '%s' has no member '%s', and nothing on a host of that "
				"name",
				json_text(set, "set", "?"), name);
	return CODE_DONE;
}

static int status_what_if(const struct args *args, const json_t *sets, const char *what)
{
	const char *lost = what + strlen("lost=");
	const json_t *set;
	size_t i;

	if (strncmp(what, "lost=", 5) != 0 || !*lost)
		return out_usage("--what-if is lost=MEMBER|HOST[,...]");
	json_array_foreach(sets, i, set)
	{
		const char *name = json_text(set, "set", "?");
		enum survive_outcome outcome;
		struct survive_lost all;
		char text[512];
		int code = status_parse_lost(set, lost, &all);

		if (code)
			return code;
		outcome = survive_loss(set, &all, text, sizeof(text));
		if (args->json)
			out_json(json_pack("{s:i, s:s, s:s, s:s, s:s}", "schema", 1, "set", name,
					   "lost", lost, "outcome", survive_outcome_str(outcome),
					   "text", text));
		else
			printf("%s without %s: %s\n", name, lost, text);
	}
	return CODE_DONE;
}

/* The options of the command line. */
struct status_wanted {
	bool check, openmetrics;
	const char *what_if, *textfile;
};

static int status_print(const struct args *args, const struct status_wanted *wanted, json_t *answer)
{
	const json_t *sets = json_object_get(answer, "sets"), *set;
	size_t i;

	if (wanted->what_if)
		return status_what_if(args, sets, wanted->what_if);
	if (args->json)
		out_json(json_incref(answer));
	else if (wanted->check)
		monitor_print(sets);
	if (args->json || wanted->check)
		return wanted->check ? (int)monitor_of(sets) : CODE_DONE;
	json_array_foreach(sets, i, set) show_set(set);
	if (!json_array_size(sets))
		printf("this host has no set\n");
	return CODE_DONE;
}

/* Write the metrics. If answer is NULL, the daemon did not answer; this is a metric as well. */
static int status_measure(const struct status_wanted *wanted, const json_t *answer)
{
	struct openmetrics om;
	struct error err;
	int code = CODE_DONE;

	openmetrics_init(&om, wanted->textfile ? OPENMETRICS_TEXT_0_0_4 : OPENMETRICS_1_0);
	metrics_write(&om, json_object_get(answer, "sets"));
	if (openmetrics_end(&om))
		code = out_fail(CODE_IO, NULL, "out of memory");
	else if (!wanted->textfile)
		fwrite(om.text, 1, om.len, stdout);
	else if (openmetrics_save(&om, wanted->textfile, &err))
		code = out_fail(CODE_IO, NULL, "%s", err.text);
	openmetrics_fini(&om);
	return code;
}

static int status_fail(const struct args *args, const struct status_wanted *wanted,
		       const struct failure *f)
{
	out_failure(f);
	if (wanted->check) {
		if (!args->json)
			monitor_print_failure(f);
		return MONITOR_UNKNOWN;
	}
	/* A set that this host does not have is the user's error, not a state of the daemon, so no
	 * metrics are written. */
	if ((wanted->openmetrics || wanted->textfile) && f->code != CODE_CONFIG)
		status_measure(wanted, NULL);
	return f->code;
}

static int status_check_wanted(const struct status_wanted *wanted)
{
	int forms = wanted->check + wanted->openmetrics + !!wanted->what_if + !!wanted->textfile;

	return forms > 1 ? out_usage("--check, --what-if, --openmetrics and --textfile do not go "
				     "together")
			 : CODE_DONE;
}

int cmd_status(int argc, char **argv)
{
	struct status_wanted wanted = {0};
	const struct args_option options[] = {{"check", ARGS_FLAG, &wanted.check},
					      {"what-if", ARGS_TEXT, &wanted.what_if},
					      {"openmetrics", ARGS_FLAG, &wanted.openmetrics},
					      {"textfile", ARGS_TEXT, &wanted.textfile},
					      {0}};
	struct failure f;
	struct args args;
	json_t *answer;
	int code, rc = args_parse(argc, argv, options, 0, 1, &args, &code);

	if (!rc)
		rc = code = status_check_wanted(&wanted);
	if (rc)
		return code && monitor_is_asked(argv) ? (int)MONITOR_UNKNOWN : code;
	code = ask_status(&args, args.rest.items[0], &answer, &f);
	if (code)
		return status_fail(&args, &wanted, &f);
	code = wanted.openmetrics || wanted.textfile ? status_measure(&wanted, answer)
						     : status_print(&args, &wanted, answer);
	json_decref(answer);
	return code;
}
