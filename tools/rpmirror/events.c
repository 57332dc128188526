/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror events: prints the present state, then each change. */
#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "base/clock.h"
#include "base/text.h"
#include "commands.h"

/* Prints "TIME kind set/member key: from -> to: sentence"; parts that the event lacks are left
 * out. */
static void events_print(const json_t *event)
{
	char line[1024];
	size_t len;
	const char *member = json_text(event, "member", NULL);
	const char *from = json_text(event, "from", NULL), *to = json_text(event, "to", NULL);

	len = (size_t)snprintf(line, sizeof(line), "%s %s %s%s%s", json_text(event, "time", "-"),
			       json_text(event, "kind", "?"), json_text(event, "set", ""),
			       member ? "/" : "", member ? member : "");
	if (len < sizeof(line) && json_text(event, "what", NULL))
		len += (size_t)snprintf(line + len, sizeof(line) - len, " %s",
					json_text(event, "what", ""));
	if (len < sizeof(line) && to)
		len += (size_t)snprintf(line + len, sizeof(line) - len, " %s -> %s",
					from ? from : "?", to);
	if (len < sizeof(line) && json_text(event, "text", NULL))
		snprintf(line + len, sizeof(line) - len, ": %s", json_text(event, "text", ""));
	text_make_printable(line);
	puts(line);
	fflush(stdout);
}

/* Print events. Ends after the present state if `now` is set, at the end of the connection, or
 * when the reader of the output is gone. */
static int events_follow(struct ask *a, const struct args *args, bool now, struct failure *f)
{
	for (;;) {
		const json_t *event;
		json_t *packet;
		bool dumped;
		int code = ask_next(a, &packet, f);

		if (code)
			return code;
		event = json_object_get(packet, "event");
		dumped = !strcmp(json_text(event, "kind", ""), "dumped");
		if (args->json)
			out_json(json_incref(packet));
		else
			events_print(event);
		json_decref(packet);
		if (ferror(stdout) || (dumped && now))
			return CODE_DONE;
		/* Remove the time limit after the present state: an hour may pass without a
		 * change. */
		if (dumped)
			a->deadline = CLOCK_NEVER;
	}
}

int cmd_events(int argc, char **argv)
{
	bool now = false;
	const struct args_option options[] = {{"now", ARGS_FLAG, &now}, {0}};
	json_t *request;
	struct failure f;
	struct args args;
	struct ask a;
	int code;

	if (args_parse(argc, argv, options, 0, 1, &args, &code))
		return code;
	request = json_pack("{s:s, s:b}", "op", "events", "now", now);
	if (args.rest.count)
		json_object_set_new(request, "set", json_string(args.rest.items[0]));
	code = ask_open(&a, &args, &f);
	if (code) {
		json_decref(request);
		return out_failure(&f);
	}
	code = ask_send(&a, request, &f);
	if (!code)
		code = events_follow(&a, &args, now, &f);
	ask_close(&a);
	return code ? out_failure(&f) : CODE_DONE;
}
