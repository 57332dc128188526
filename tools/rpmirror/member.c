/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror member: adds, removes and replaces members of a set. */
#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "place.h"

struct member_command {
	const char *verb, *op, *done;
	bool has_place, may_have_place;
};

static const struct member_command member_commands[] = {
	{"add", "member-add",
	 "added; make its copy on its host: rpmirror init SET --join MEMBER --register URI", true,
	 true},
	{"remove", "member-remove", "removed; its copy is refused from now on", false, false},
	{"replace", "member-replace",
	 "replaced; the former copy is refused from now on. Make the new one on its host: rpmirror "
	 "init SET --join MEMBER --register URI",
	 false, true},
};

static const struct member_command *member_find(const char *verb)
{
	for (unsigned i = 0; i < sizeof(member_commands) / sizeof(member_commands[0]); i++)
		if (!strcmp(member_commands[i].verb, verb))
			return &member_commands[i];
	return NULL;
}

/* Parse a name, or a name with the address and path of its copy. Returns NULL after a printed
 * error. */
static json_t *member_parse(const struct member_command *command, const char *text)
{
	struct mirror_member m = {0};
	const char *why;

	if (!strchr(text, '=') && !command->has_place)
		return json_pack("{s:s}", "name", text);
	if (!command->may_have_place) {
		out_usage("'%s' is no member's name", text);
		return NULL;
	}
	if (!place_parse(text, &m, &why)) {
		out_usage("'%s' is no member: %s", text, why);
		return NULL;
	}
	return json_pack("{s:s, s:s, s:i, s:s}", "name", m.name, "host", m.host, "port", m.port,
			 "path", m.path);
}

static int member_send(const struct args *args, const struct member_command *command,
		       json_t *member)
{
	char set[MIRROR_SET_MAX + 1];
	struct failure f;
	json_t *request, *answer;
	int code = 0;

	if (args->rest.count == 3)
		snprintf(set, sizeof(set), "%s", args->rest.items[1]);
	else
		code = ask_only_set(args, set, &f);
	if (code) {
		json_decref(member);
		return out_failure(&f);
	}
	/* `remove` takes only a name. */
	if (!command->may_have_place) {
		json_t *name = json_incref(json_object_get(member, "name"));

		json_decref(member);
		member = name;
	}
	request = json_pack("{s:s, s:s, s:o}", "op", command->op, "set", set, "member", member);
	code = ask_once(args, request, &answer, &f);
	if (code)
		return out_failure(&f);
	if (args->json)
		out_json(answer);
	else {
		const char *text = json_text(answer, "text", "");

		printf("%s%s%s\n", command->done, *text ? ". " : "", text);
		json_decref(answer);
	}
	return CODE_DONE;
}

int cmd_member(int argc, char **argv)
{
	const struct args_option options[] = {{0}};
	const struct member_command *command;
	json_t *member;
	struct args args;
	int code;

	if (args_parse(argc, argv, options, 2, 3, &args, &code))
		return code;
	command = member_find(args.rest.items[0]);
	if (!command)
		return out_usage("'%s' is none of add, remove and replace", args.rest.items[0]);
	member = member_parse(command, args.rest.items[args.rest.count - 1]);
	return member ? member_send(&args, command, member) : CODE_USAGE;
}
