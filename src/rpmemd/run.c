/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/poll.h"
#include "rpmemd/service.h"

#define RUN_SEND_MS 30000 /* time limit for the initiator to receive an answer */

struct run {
	const struct run_opts *opts;
	struct wire_stream stream;
	struct control control;
	struct service service;
};

static int run_send_greeting(struct wire_stream *stream, const struct error *failure)
{
	struct wire_greeting greeting = {.flags = 0};
	uint8_t buf[WIRE_BODY_MAX];

	if (failure) {
		/* An error without an errno must not look like success. */
		greeting.error = failure->cause > 0 ? (uint32_t)failure->cause : EIO;
		snprintf(greeting.text, sizeof(greeting.text), "%s", failure->text);
	}
	wire_random(greeting.nonce, sizeof(greeting.nonce));
	return wire_stream_send(stream, WIRE_GREETING, buf, wire_greeting_encode(&greeting, buf),
				poll_deadline(RUN_SEND_MS));
}

void run_report_failure(int out, const struct error *err)
{
	struct wire_stream *stream = malloc(sizeof(*stream));

	if (!stream)
		return;
	wire_stream_init(stream, out, out);
	run_send_greeting(stream, err);
	free(stream);
}

static enum run_exit run_on_failure(struct run *r, int rc)
{
	struct error err;

	wire_stream_explain(&r->stream, rc, "the initiator", &err);
	LOG_ERROR("%s", err.text);
	return rc == -ECONNRESET || rc == -ETIMEDOUT ? RUN_ENDED : RUN_MALFORMED;
}

static int run_answer(struct run *r, const struct wire_answer *answer)
{
	uint8_t buf[WIRE_BODY_MAX];

	return wire_stream_send(&r->stream, WIRE_ANSWER, buf, wire_answer_encode(answer, buf),
				poll_deadline(RUN_SEND_MS));
}

/* Handle all received requests. Returns false if the session is over, with its exit code in
 * *code. */
static bool run_take_requests(struct run *r, enum run_exit *code)
{
	struct wire_answer answer;
	struct wire_frame frame;
	int rc;

	while (!(rc = wire_stream_try_receive(&r->stream, &frame))) {
		LOG_DEBUG("%s", wire_type_name(frame.type));
		if (!control_on_frame(&r->control, &frame, &answer)) {
			LOG_ERROR("%s from the initiator is malformed or out of place",
				  wire_type_name(frame.type));
			*code = RUN_MALFORMED;
			return false;
		}
		rc = run_answer(r, &answer);
		if (rc || r->control.is_over) {
			*code = rc ? run_on_failure(r, rc) : RUN_CLOSED;
			return false;
		}
	}
	if (rc == -EAGAIN)
		return true;
	*code = run_on_failure(r, rc);
	return false;
}

/* Returns true if this end has a reason to close the session. The lanes are closed with the
 * session, so flushes fail. */
static bool run_is_over(struct run *r, bool has_signal)
{
	struct error err;

	if (has_signal)
		LOG_NOTICE("ended by a signal");
	else if (r->service.data && data_is_deserted(r->service.data))
		LOG_NOTICE("the initiator has no lane any more, and did not send CLOSE");
	else if (r->service.watch && watch_has_lost(r->service.watch, &err))
		LOG_ERROR("%s", err.text);
	else
		return false;
	return true;
}

static enum run_exit run_loop(struct run *r)
{
	struct pollfd fds[] = {{.fd = r->opts->in, .events = POLLIN},
			       {.fd = r->opts->signal_fd, .events = POLLIN},
			       {.fd = -1, .events = POLLIN},
			       {.fd = -1, .events = POLLIN}};
	enum run_exit code;

	while (run_take_requests(r, &code)) {
		int wait_ms = r->service.data ? data_step(r->service.data) : -1;
		fds[2].fd = r->service.data ? data_get_fd(r->service.data) : -1;
		fds[3].fd = r->service.watch ? watch_get_fd(r->service.watch) : -1;
		if (run_is_over(r, poll(fds, 4, wait_ms) > 0 && fds[1].revents))
			return RUN_ENDED;
	}
	return code;
}

/* Start the session. Returns 0, or an error whose cause decides the exit code. */
static int run_begin(struct run *r, struct error *err)
{
	int rc;

	if (r->opts->start) {
		rc = direct_answer(&r->stream, r->opts->start, NULL, err);
		direct_seal(&r->stream, r->opts->start, &r->service.lane_key);
		return rc;
	}
	rc = run_send_greeting(&r->stream, NULL);
	return rc ? wire_stream_explain(&r->stream, rc, "the initiator", err) : 0;
}

static enum run_exit run_from_beginning(struct run *r)
{
	enum run_exit code;
	struct error err;

	if (run_begin(r, &err)) {
		LOG_ERROR("%s", err.text);
		return err.kind == ERROR_REFUSED || err.cause == ECONNRESET ||
				       err.cause == ETIMEDOUT
			       ? RUN_ENDED
			       : RUN_MALFORMED;
	}
	code = run_loop(r);
	service_end(&r->service);
	return code;
}

enum run_exit run_session(const struct run_opts *opts)
{
	struct run *r = calloc(1, sizeof(*r));
	enum run_exit code;

	if (!r) {
		LOG_ERROR("out of memory for a session");
		return RUN_ENDED;
	}
	r->opts = opts;
	r->service = (struct service){.settings = opts->settings,
				      .addr = opts->endpoint->here,
				      .without_ssh = opts->start != NULL};
	wire_stream_init(&r->stream, opts->in, opts->out);
	control_init(&r->control, &service_calls, &r->service);
	code = run_from_beginning(r);
	memset(&r->service.lane_key, 0, sizeof(r->service.lane_key));
	free(r);
	return code;
}
