/* SPDX-License-Identifier: BSD-3-Clause */
#include "ask.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/poll.h"
#include "mirror/core/types.h"

/* Time to wait beyond the time limit: the daemon stops at the limit, and its answer has the
 * reason. */
#define ASK_GRACE_MS 1000

static const char ask_is_it_running[] = "is rpmirrord running on this host?";

int ask_open(struct ask *a, const struct args *args, struct failure *f)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	a->deadline = clock_now_ns() + (args->timeout_ms + ASK_GRACE_MS) * NSEC_PER_MS;
	a->socket = args->socket;
	a->fd = -1;
	if (strlen(args->socket) >= sizeof(sun.sun_path))
		return failure_set(f, CODE_USAGE, NULL, "the socket's path is too long: %s",
				   args->socket);
	strcpy(sun.sun_path, args->socket);
	a->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (a->fd >= 0 && !connect(a->fd, (struct sockaddr *)&sun, sizeof(sun)))
		return 0;
	failure_set(f, errno == EACCES ? CODE_CONFIG : CODE_UNREACHABLE,
		    errno == EACCES ? "only root and the daemon's user may connect"
				    : ask_is_it_running,
		    "cannot connect to %s: %s", args->socket, strerror(errno));
	ask_close(a);
	return f->code;
}

void ask_close(struct ask *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
}

int ask_send(struct ask *a, json_t *request, struct failure *f)
{
	char *text = json_dumps(request, JSON_COMPACT);
	ssize_t n;

	json_decref(request);
	if (!text)
		return failure_set(f, CODE_USAGE, NULL, "an argument is not UTF-8");
	n = send(a->fd, text, strlen(text), MSG_NOSIGNAL);
	free(text);
	if (n < 0)
		return failure_set(f, CODE_UNREACHABLE, ask_is_it_running, "cannot ask %s: %s",
				   a->socket, strerror(errno));
	return 0;
}

static int ask_read_error(const json_t *error, struct failure *f)
{
	enum code code = code_of_name(json_text(error, "name", ""));

	/* Use the name of the code before its number: a daemon of an earlier build has different
	 * numbers for two codes. */
	if (code == CODE_DONE || code == CODE_END)
		code = (enum code)json_count(error, "code", CODE_END, CODE_END);
	/* A newer daemon may send an unknown code. */
	if (code == CODE_DONE || code == CODE_END)
		code = CODE_UNREACHABLE;
	return failure_set(f, code, json_text(error, "hint", ""), "%s",
			   json_text(error, "message", "the daemon refuses without a reason"));
}

static int ask_parse(const struct ask *a, const char *text, size_t len, json_t **answer,
		     struct failure *f)
{
	json_t *json = json_loadb(text, len, 0, NULL);
	const json_t *error = json_object_get(json, "error");
	int code = 0;

	if (!json_is_object(json))
		code = failure_set(f, CODE_UNREACHABLE, NULL,
				   "%s does not answer as rpmirrord does", a->socket);
	else if (error)
		code = ask_read_error(error, f);
	if (code)
		json_decref(json);
	else
		*answer = json;
	return code;
}

int ask_next(struct ask *a, json_t **answer, struct failure *f)
{
	char *text = malloc(ASK_PACKET);
	ssize_t n = -1;
	int code;

	if (!text)
		return failure_set(f, CODE_IO, NULL, "out of memory");
	errno = -poll_readable(a->fd, a->deadline);
	if (!errno)
		n = recv(a->fd, text, ASK_PACKET, 0);
	if (n > 0)
		code = ask_parse(a, text, (size_t)n, answer, f);
	else if (errno == ETIMEDOUT)
		code = failure_set(f, CODE_TIMEOUT, "--timeout waits longer",
				   "rpmirrord has not answered in time");
	else
		code = failure_set(f, CODE_UNREACHABLE, ask_is_it_running,
				   "the connection to %s has ended: %s", a->socket,
				   n ? strerror(errno) : "closed by rpmirrord");
	free(text);
	return code;
}

int ask_once(const struct args *args, json_t *request, json_t **answer, struct failure *f)
{
	struct ask a;
	int code = ask_open(&a, args, f);

	if (code) {
		json_decref(request);
		return code;
	}
	json_object_set_new(request, "timeout_ms", json_integer((json_int_t)args->timeout_ms));
	code = ask_send(&a, request, f);
	if (!code)
		code = ask_next(&a, answer, f);
	ask_close(&a);
	return code;
}

int ask_status(const struct args *args, const char *set, json_t **answer, struct failure *f)
{
	json_t *request = json_pack("{s:s}", "op", "status");

	if (set)
		json_object_set_new(request, "set", json_string(set));
	return ask_once(args, request, answer, f);
}

int ask_only_set(const struct args *args, char *set, struct failure *f)
{
	const json_t *sets;
	json_t *answer;
	size_t count;
	int code = ask_status(args, NULL, &answer, f);

	if (code)
		return code;
	sets = json_object_get(answer, "sets");
	count = json_array_size(sets);
	if (count == 1)
		snprintf(set, MIRROR_SET_MAX + 1, "%s",
			 json_text(json_array_get(sets, 0), "set", ""));
	else
		code = failure_set(f, CODE_USAGE, NULL,
				   count ? "this host has several sets: name one"
					 : "this host has no set");
	json_decref(answer);
	return code;
}
