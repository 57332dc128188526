/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror status: a short tree, JSON, a check for monitoring, and what a loss would do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "base/text.h"
#include "commands.h"
#include "show.h"
#include "survive.h"

/* Of --check. */
enum { CHECK_HEALTHY, CHECK_PROGRESSING, CHECK_STUCK, CHECK_DOWN };

static int status_check_set(const json_t *set)
{
	const char *health = json_text(set, "health", "down");

	if (!strcmp(health, "healthy"))
		return CHECK_HEALTHY;
	if (strcmp(health, "degraded") != 0)
		return CHECK_DOWN;
	return json_flag(set, "progressing") ? CHECK_PROGRESSING : CHECK_STUCK;
}

/* The worst one counts; a set that no daemon knows is down. */
static int status_check(const json_t *sets)
{
	int worst = json_array_size(sets) ? CHECK_HEALTHY : CHECK_DOWN;
	const json_t *set;
	size_t i;

	json_array_foreach(sets, i, set)
	{
		int one = status_check_set(set);

		worst = one > worst ? one : worst;
	}
	return worst;
}

/* "a,b" */
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

static int status_print(const struct args *args, json_t *answer, const char *what_if)
{
	const json_t *sets = json_object_get(answer, "sets"), *set;
	size_t i;

	if (what_if)
		return status_what_if(args, sets, what_if);
	if (args->json) {
		out_json(json_incref(answer));
		return CODE_DONE;
	}
	json_array_foreach(sets, i, set) show_set(set);
	if (!json_array_size(sets))
		printf("this host has no set\n");
	return CODE_DONE;
}

int cmd_status(int argc, char **argv)
{
	bool check = false;
	const char *what_if = NULL;
	const struct args_option options[] = {
		{"check", ARGS_FLAG, &check}, {"what-if", ARGS_TEXT, &what_if}, {0}};
	struct failure f;
	struct args args;
	json_t *answer;
	int code;

	if (args_parse(argc, argv, options, 0, 1, &args, &code))
		return code;
	code = ask_status(&args, args.rest.items[0], &answer, &f);
	if (code) {
		out_failure(&f);
		return check ? CHECK_DOWN : code;
	}
	code = status_print(&args, answer, what_if);
	if (check && !code)
		code = status_check(json_object_get(answer, "sets"));
	json_decref(answer);
	return code;
}
