/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror wait: waits until an expression over the status holds. */
#include <time.h>

#include "ask.h"
#include "base/poll.h"
#include "commands.h"
#include "expr.h"

#define WAIT_LOOK_MS 100

/* Ask once whether the expression holds. Returns false with the reason in *f. */
static bool wait_look(const struct args *args, const struct expr *e, struct failure *f)
{
	char why[sizeof(f->text) / 2];
	const json_t *sets;
	json_t *answer;
	bool holds = false;

	if (ask_status(args, args->rest.items[0], &answer, f))
		return false;
	sets = json_object_get(answer, "sets");
	if (json_array_size(sets) != 1)
		failure_set(f, CODE_CONFIG, NULL, "this host has no such set");
	else if (expr_holds(e, json_array_get(sets, 0), why, sizeof(why)))
		holds = true;
	else
		failure_set(f, CODE_TIMEOUT, NULL, "%s", why);
	json_decref(answer);
	return holds;
}

/* Repeat the request even while the daemon restarts. After the time limit, report the reason that
 * the last request gave. */
static int wait_until(const struct args *args, const struct expr *e)
{
	uint64_t deadline = clock_now_ns() + args->timeout_ms * NSEC_PER_MS;
	struct args one = *args;
	struct failure f;

	for (;;) {
		struct timespec pause = {.tv_nsec = WAIT_LOOK_MS * NSEC_PER_MS};

		one.timeout_ms = (uint64_t)poll_ms_left(deadline);
		if (!one.timeout_ms)
			one.timeout_ms = 1;
		if (wait_look(&one, e, &f))
			return CODE_DONE;
		if (f.code == CODE_USAGE || f.code == CODE_CONFIG)
			return out_failure(&f);
		if (!poll_ms_left(deadline))
			return out_fail(CODE_TIMEOUT, f.hint, "waited %.1f s: %s",
					(double)args->timeout_ms / 1000, f.text);
		nanosleep(&pause, NULL);
	}
}

int cmd_wait(int argc, char **argv)
{
	const char *until = NULL;
	const struct args_option options[] = {{"until", ARGS_TEXT, &until}, {0}};
	char why[256];
	struct args args;
	struct expr e;
	int code;

	if (args_parse(argc, argv, options, 1, 1, &args, &code))
		return code;
	if (!until)
		return out_usage("name the state to wait for: --until health=healthy");
	if (!expr_parse(&e, until, why, sizeof(why)))
		return out_usage("--until %s: %s", until, why);
	return wait_until(&args, &e);
}
