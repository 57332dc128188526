/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/control.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/poll.h"
#include "base/text.h"
#include "rpmem/child.h"
#include "rpmem/command.h"
#include "rpmem/direct.h"
#include "rpmem/env.h"
#include "rpmem/errmsg.h"

#define CONTROL_GRACE_MS 2000 /* time for ssh to end before it is killed */

struct control {
	struct list node;
	pthread_mutex_t lock; /* guards the stream and the members below */
	struct wire_stream stream;
	bool direct, inherited;
	struct child ssh;         /* used only without `direct` */
	int fd;                   /* used only with `direct` */
	struct wire_key lane_key; /* used only with `direct` */
	int timeout_ms;
	int failed; /* errno of the first failure; 0: the stream works */
	char who[TARGET_TEXT];
};

/* All control streams of this process. fork() needs the list. */
static pthread_mutex_t controls_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list controls = LIST_INIT(controls);

static void control_before_fork(void)
{
	pthread_mutex_lock(&controls_lock);
}

static void control_after_fork(void)
{
	pthread_mutex_unlock(&controls_lock);
}

/* Close the child's copy of the descriptor: otherwise the session would continue after the parent
 * is killed. */
static void control_in_child(void)
{
	struct list *it;

	while ((it = list_pop(&controls))) {
		struct control *c = container_of(it, struct control, node);

		c->inherited = true;
		if (c->direct)
			close(c->fd);
		else
			child_forget(&c->ssh);
	}
	pthread_mutex_unlock(&controls_lock);
}

__attribute__((constructor)) static void control_on_load(void)
{
	pthread_atfork(control_before_fork, control_after_fork, control_in_child);
}

static uint64_t control_deadline(const struct control *c)
{
	return poll_deadline(c->timeout_ms);
}

/* Report ssh's message, which explains more than the text for the end of the stream. */
static int control_explain_ssh(struct control *c, int failure, const struct error *err)
{
	char words[CHILD_SAID + 64];

	if (failure == -ECONNRESET)
		child_wait(&c->ssh, poll_deadline(CONTROL_GRACE_MS));
	child_take_said(&c->ssh);
	child_words(&c->ssh, words, sizeof(words));
	if (words[0])
		return errmsg_fail(err->cause, "%s: %s", err->text, words);
	if (c->ssh.ended && c->ssh.status > 0)
		return errmsg_fail(err->cause, "%s; ssh ended with status %d", err->text,
				   c->ssh.status);
	return errmsg_fail(err->cause, "%s", err->text);
}

/* Mark the stream as failed. failure: the result of wire_stream_send() or wire_stream_receive(). */
static int control_fail(struct control *c, int failure)
{
	struct error err;

	wire_stream_explain(&c->stream, failure, c->who, &err);
	c->failed = err.cause;
	return c->direct ? errmsg_fail(err.cause, "%s", err.text)
			 : control_explain_ssh(c, failure, &err);
}

/*
 * Receive the next frame. Meanwhile the call reads ssh's standard error, so that neither end waits
 * for the other end.
 */
static int control_receive(struct control *c, struct wire_frame *frame, uint64_t deadline)
{
	int rc;

	if (c->direct)
		return wire_stream_receive(&c->stream, frame, deadline);
	while ((rc = wire_stream_try_receive(&c->stream, frame)) == -EAGAIN) {
		rc = child_wait_readable(&c->ssh, deadline);
		if (rc)
			return -rc;
	}
	return rc;
}

static int control_receive_greeting(struct control *c, uint64_t deadline)
{
	struct wire_greeting greeting;
	struct wire_frame frame;
	int rc = control_receive(c, &frame, deadline);

	if (rc)
		return control_fail(c, rc);
	if (frame.type != WIRE_GREETING || !wire_greeting_decode(frame.body, frame.len, &greeting))
		return control_fail(c, -EMSGSIZE);
	text_make_printable(greeting.text);
	if (greeting.error)
		return errmsg_fail((int)greeting.error, "%s does not start: %s", c->who,
				   greeting.text);
	if (c->direct && !(greeting.flags & WIRE_GREETING_PROVE))
		return errmsg_fail(
			EACCES, "%s asks for no proof of the secret, so it may be another program",
			c->who);
	return c->direct ? direct_prove(&c->stream, &greeting, c->who, deadline, &c->lane_key) : 0;
}

static int control_start_ssh(struct control *c, const struct target *target, bool ipv4)
{
	struct command *cmd = malloc(sizeof(*cmd));
	int rc;

	if (!cmd)
		return errmsg_fail(ENOMEM, "out of memory");
	rc = command_serve(cmd, target, ipv4);
	if (!rc) {
		LOG_INFO("run %s for %s: %s", cmd->argv[0], cmd->where, cmd->text);
		rc = child_start(&c->ssh, cmd->argv);
		if (rc)
			rc = errmsg_fail(ECONNRESET, "cannot run %s: %s", cmd->argv[0],
					 strerror(rc));
	}
	free(cmd);
	if (!rc)
		wire_stream_init(&c->stream, c->ssh.out, c->ssh.in);
	return rc;
}

static int control_start(struct control *c, const struct target *target, bool ipv4)
{
	uint64_t deadline = control_deadline(c);
	int rc;

	rc = c->direct ? direct_connect(target, deadline, &c->fd)
		       : control_start_ssh(c, target, ipv4);
	if (rc)
		return rc;
	if (c->direct)
		wire_stream_init(&c->stream, c->fd, c->fd);
	pthread_mutex_lock(&controls_lock);
	list_add_tail(&controls, &c->node);
	pthread_mutex_unlock(&controls_lock);
	return control_receive_greeting(c, deadline);
}

int control_open(const struct target *target, bool ipv4, struct control **control)
{
	struct control *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return errmsg_fail(ENOMEM, "out of memory");
	list_init(&c->node);
	pthread_mutex_init(&c->lock, NULL);
	c->direct = target->direct;
	c->fd = c->ssh.in = c->ssh.out = c->ssh.err = c->ssh.pidfd = -1;
	c->ssh.ended = true;
	c->timeout_ms = env_timeout_ms();
	snprintf(c->who, sizeof(c->who), "rpmemd on %s", target->host);
	rc = control_start(c, target, ipv4);
	if (rc) {
		control_close(c);
		return rc;
	}
	*control = c;
	return 0;
}

/* Set the text of the daemon's refusal. The status comes first, because programs of PMDK compare
 * it. */
static int control_refused(const struct control *c, const struct wire_answer *answer)
{
	int error = wire_status_errno(answer->status);

	if (answer->request == WIRE_REMOVE && answer->error)
		error = (int)answer->error; /* equal to the daemon's exit status */
	return errmsg_fail(error, "%s%s%s (%s)", wire_status_text(answer->status),
			   answer->text[0] ? ": " : "", answer->text, c->who);
}

static int control_exchange(struct control *c, enum wire_type type, const uint8_t *body, size_t len,
			    struct wire_answer *answer)
{
	uint64_t deadline = control_deadline(c);
	struct wire_frame frame;
	int rc;

	if (c->failed)
		return errmsg_fail(c->failed, "the session with %s has failed", c->who);
	rc = wire_stream_send(&c->stream, type, body, len, deadline);
	if (!rc)
		rc = control_receive(c, &frame, deadline);
	if (rc)
		return control_fail(c, rc);
	if (frame.type != WIRE_ANSWER || !wire_answer_decode(frame.body, frame.len, answer) ||
	    answer->request != type) {
		memset(answer, 0, sizeof(*answer));
		return control_fail(c, -EMSGSIZE);
	}
	text_make_printable(answer->text);
	return answer->status == WIRE_OK ? 0 : control_refused(c, answer);
}

int control_request(struct control *c, enum wire_type type, const uint8_t *body, size_t len,
		    struct wire_answer *answer)
{
	int rc;

	memset(answer, 0, sizeof(*answer));
	pthread_mutex_lock(&c->lock);
	rc = control_exchange(c, type, body, len, answer);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

bool control_lane_key(const struct control *c, struct wire_key *key)
{
	if (c->direct)
		*key = c->lane_key;
	return c->direct;
}

bool control_has_failed(struct control *c)
{
	bool failed;

	pthread_mutex_lock(&c->lock);
	failed = c->failed != 0;
	pthread_mutex_unlock(&c->lock);
	return failed;
}

bool control_is_inherited(const struct control *c)
{
	return c->inherited;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	if (!c->inherited) {
		pthread_mutex_lock(&controls_lock);
		list_del(&c->node);
		pthread_mutex_unlock(&controls_lock);
		if (c->direct && c->fd >= 0) {
			shutdown(c->fd, SHUT_RDWR);
			close(c->fd);
		} else if (!c->direct) {
			child_end(&c->ssh, c->failed ? 0 : CONTROL_GRACE_MS);
		}
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
}
