/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands that send one request to the daemon. */
#include <stdio.h>
#include <string.h>

#include "../numbers.h"
#include "ask.h"
#include "base/text.h"
#include "commands.h"
#include "mirror/core/types.h"
#include "show.h"

static const struct args_option request_no_options[] = {{0}};

/* Parse "[SET] MEMBER" or "[SET]". Without SET, use the daemon's only set. */
static int request_target(const struct args *args, bool has_member, char set[MIRROR_SET_MAX + 1],
			  struct failure *f)
{
	if (args->rest.count > (has_member ? 1 : 0)) {
		if (strlen(args->rest.items[0]) > MIRROR_SET_MAX)
			return failure_set(f, CODE_CONFIG, NULL, "there is no set '%s'",
					   args->rest.items[0]);
		strcpy(set, args->rest.items[0]);
		return 0;
	}
	return ask_only_set(args, set, f);
}

/* Add op, set and member to the request, send it, and free it. Prints the result. */
static int request_run(const struct args *args, const char *op, bool has_member, json_t *request,
		       json_t **answer)
{
	char set[MIRROR_SET_MAX + 1];
	struct failure f;
	int code = request_target(args, has_member, set, &f);

	if (code) {
		json_decref(request);
		return out_failure(&f);
	}
	json_object_set_new(request, "op", json_string(op));
	json_object_set_new(request, "set", json_string(set));
	code = ask_once(args, request, answer, &f);
	return code ? out_failure(&f) : CODE_DONE;
}

/* Print the result: the daemon's message, or `done` if there is no message. */
static int request_finish(const struct args *args, json_t *answer, const char *done)
{
	char text[512];

	if (args->json) {
		out_json(answer);
		return CODE_DONE;
	}
	snprintf(text, sizeof(text), "%s", json_text(answer, "text", done));
	text_make_printable(text);
	printf("%s\n", text);
	json_decref(answer);
	return CODE_DONE;
}

/* Run a request for which only `done` is printed. */
static int request_simple(const struct args *args, const char *op, const char *member_key,
			  json_t *request, const char *done)
{
	json_t *answer;
	int code;

	if (member_key)
		json_object_set_new(request, member_key,
				    json_string(args->rest.items[args->rest.count - 1]));
	code = request_run(args, op, member_key != NULL, request, &answer);
	return code ? code : request_finish(args, answer, done);
}

int cmd_promote(int argc, char **argv)
{
	bool force = false;
	const struct args_option options[] = {{"force", ARGS_FLAG, &force}, {0}};
	struct args args;
	int code;

	if (args_parse(argc, argv, options, 1, 2, &args, &code))
		return code;
	return request_simple(
		&args, "promote", "member", json_pack("{s:b}", "force", force),
		force ? "promoted by force: acknowledged data that it lacks are lost; the other "
			"copies are compared when they return"
		      : "promoted");
}

int cmd_demote(int argc, char **argv)
{
	struct args args;
	int code;

	if (args_parse(argc, argv, request_no_options, 0, 1, &args, &code))
		return code;
	return request_simple(&args, "demote", NULL, json_object(), "demoted: all is flushed");
}

int cmd_resync(int argc, char **argv)
{
	bool full = false;
	const char *from = NULL;
	const struct args_option options[] = {
		{"full", ARGS_FLAG, &full}, {"from", ARGS_TEXT, &from}, {0}};
	json_t *request;
	struct args args;
	int code;

	if (args_parse(argc, argv, options, 1, 2, &args, &code))
		return code;
	request = json_pack("{s:b}", "full", full);
	if (from)
		json_object_set_new(request, "from", json_string(from));
	return request_simple(&args, "resync", "member", request,
			      "the resync has begun; rpmirror status shows how far it is");
}

static int request_of_member(int argc, char **argv, const char *op, const char *key,
			     const char *done)
{
	struct args args;
	int code;

	if (args_parse(argc, argv, request_no_options, 1, 2, &args, &code))
		return code;
	return request_simple(&args, op, key, json_object(), done);
}

int cmd_pause(int argc, char **argv)
{
	return request_of_member(argc, argv, "pause", "member", "its resync is paused");
}

int cmd_resume(int argc, char **argv)
{
	return request_of_member(argc, argv, "resume", "member", "its resync goes on");
}

int cmd_fence(int argc, char **argv)
{
	return request_of_member(argc, argv, "fence", "member", "done");
}

int cmd_resolve(int argc, char **argv)
{
	const char *discard = NULL;
	const struct args_option options[] = {{"discard", ARGS_TEXT, &discard}, {0}};
	json_t *answer;
	struct args args;
	int code;

	if (args_parse(argc, argv, options, 0, 1, &args, &code))
		return code;
	if (!discard)
		return out_usage("name the member whose copy is discarded: --discard MEMBER");
	code = request_run(&args, "resolve", false, json_pack("{s:s}", "discard", discard),
			   &answer);
	return code ? code
		    : request_finish(
			      &args, answer,
			      "the data by which its copy differs are discarded; the copy is made "
			      "equal to the others");
}

int cmd_grow(int argc, char **argv)
{
	struct args args;
	json_t *answer;
	uint64_t size;
	int code;

	if (args_parse(argc, argv, request_no_options, 1, 2, &args, &code))
		return code;
	if (!number_parse_size(args.rest.items[args.rest.count - 1], &size) || !size ||
	    size % MIRROR_BLOCK || size > MIRROR_SIZE_MAX)
		return out_usage("'%s' is no size: whole units of 4 KiB, such as 16G",
				 args.rest.items[args.rest.count - 1]);
	code = request_run(&args, "grow", true, json_pack("{s:I}", "size", (json_int_t)size),
			   &answer);
	return code ? code
		    : request_finish(&args, answer,
				     "the set has its new size; it is used when the set is "
				     "mapped the next time");
}

static void request_show_range(const json_t *range)
{
	char name[MIRROR_NAME_MAX + 1];

	snprintf(name, sizeof(name), "%s",
		 json_is_string(json_array_get(range, 2))
			 ? json_string_value(json_array_get(range, 2))
			 : "?");
	text_make_printable(name);
	printf("  member %s offset %" JSON_INTEGER_FORMAT " length %" JSON_INTEGER_FORMAT "\n",
	       name, json_integer_value(json_array_get(range, 0)),
	       json_integer_value(json_array_get(range, 1)));
}

static int request_show_verified(const struct args *args, json_t *answer)
{
	double different = json_figure(answer, "different", 0);
	const json_t *range;
	size_t i;

	if (args->json) {
		out_json(answer);
		return different > 0 ? CODE_NOT_INSYNC : CODE_DONE;
	}
	if (json_object_get(answer, "compared"))
		printf("compared %.0f bytes, %.0f differ\n", json_figure(answer, "compared", 0),
		       different);
	else
		printf("the copies are equal\n");
	json_array_foreach(json_object_get(answer, "ranges"), i, range) request_show_range(range);
	json_decref(answer);
	return different > 0 ? CODE_NOT_INSYNC : CODE_DONE;
}

int cmd_verify(int argc, char **argv)
{
	bool repair = false;
	uint64_t rate = 0;
	const char *member = NULL;
	const struct args_option options[] = {{"repair", ARGS_FLAG, &repair},
					      {"rate", ARGS_SIZE, &rate},
					      {"member", ARGS_TEXT, &member},
					      {0}};
	json_t *request, *answer;
	struct args args;
	int code;

	if (args_parse(argc, argv, options, 0, 1, &args, &code))
		return code;
	request = json_pack("{s:b}", "repair", repair);
	if (rate)
		json_object_set_new(request, "rate", json_integer((json_int_t)rate));
	if (member)
		json_object_set_new(request, "member", json_string(member));
	code = request_run(&args, "verify", false, request, &answer);
	return code ? code : request_show_verified(&args, answer);
}

int cmd_explain(int argc, char **argv)
{
	struct args args;
	struct failure f;
	const json_t *set;
	json_t *answer;
	size_t i;
	int code;

	if (args_parse(argc, argv, request_no_options, 0, 1, &args, &code))
		return code;
	code = ask_status(&args, args.rest.items[0], &answer, &f);
	if (code)
		return out_failure(&f);
	if (args.json) {
		out_json(answer);
		return CODE_DONE;
	}
	json_array_foreach(json_object_get(answer, "sets"), i, set) show_explanation(set);
	json_decref(answer);
	return CODE_DONE;
}
