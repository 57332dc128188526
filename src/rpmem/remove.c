/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes a pool: by rpmemd's option --remove over ssh, or by a message over a direct
 * connection. */
#include <errno.h>
#include <librpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/poll.h"
#include "rpmem/child.h"
#include "rpmem/command.h"
#include "rpmem/env.h"
#include "rpmem/errmsg.h"
#include "rpmem/pool.h"

static int remove_status(struct child *ssh, const char *host)
{
	char words[CHILD_SAID + 64];

	if (!ssh->status)
		return 0;
	child_words(ssh, words, sizeof(words));
	if (ssh->status == -1)
		return errmsg_fail(ECHILD,
				   "removing a pool on %s: the application took the exit "
				   "status of ssh: %s",
				   host, words);
	/* An exit status of 126 or more comes from ssh itself, or from a shell that found no
	 * rpmemd. */
	return errmsg_fail(ssh->status >= 126 ? ECONNRESET : ssh->status,
			   "removing a pool on %s: exit status %d: %s", host, ssh->status, words);
}

/* Wait for ssh's end. ssh writes nothing to its standard output. */
static int remove_wait(struct child *ssh, const char *host)
{
	uint64_t deadline = poll_deadline(env_timeout_ms());
	char byte;
	int rc = child_wait_readable(ssh, deadline);

	if (!rc && read(ssh->out, &byte, 1) > 0)
		return errmsg_fail(EPROTO, "removing a pool on %s: output from the other end",
				   host);
	if (!rc)
		rc = child_wait(ssh, deadline);
	if (rc)
		return errmsg_fail(rc, "removing a pool on %s: no end in time", host);
	return remove_status(ssh, host);
}

static int remove_by_ssh(const struct target *target, const char *set, int flags)
{
	struct command *cmd = malloc(sizeof(*cmd));
	struct child ssh;
	int rc;

	if (!cmd)
		return errmsg_fail(ENOMEM, "out of memory");
	rc = command_remove(cmd, target, false, set, flags);
	if (!rc) {
		rc = child_start(&ssh, cmd->argv);
		if (rc) {
			rc = errmsg_fail(ECONNRESET, "cannot run %s: %s", cmd->argv[0],
					 strerror(rc));
		} else {
			rc = remove_wait(&ssh, target->host);
			child_end(&ssh, 0);
		}
	}
	free(cmd);
	return rc;
}

static int remove_direct(const struct target *target, const char *set, int flags)
{
	struct wire_remove *m = calloc(1, sizeof(*m));
	uint8_t *body = malloc(WIRE_BODY_MAX);
	struct wire_answer answer;
	struct control *control;
	int rc = m && body ? control_open(target, false, &control)
			   : errmsg_fail(ENOMEM, "out of memory");

	if (!rc) {
		m->flags = (flags & RPMEM_REMOVE_FORCE ? WIRE_REMOVE_FORCE : 0) |
			   (flags & RPMEM_REMOVE_POOL_SET ? WIRE_REMOVE_POOL_SET : 0);
		snprintf(m->name, sizeof(m->name), "%s", set);
		rc = control_request(control, WIRE_REMOVE, body, wire_remove_encode(m, body),
				     &answer);
		control_close(control);
	}
	free(m);
	free(body);
	return rc;
}

int rpmem_remove(const char *target, const char *pool_set, int flags)
{
	struct target t;
	int rc = target_parse(target, &t);

	if (!rc && flags & ~(RPMEM_REMOVE_FORCE | RPMEM_REMOVE_POOL_SET))
		rc = errmsg_fail(EINVAL, "invalid flags (0x%x)", (unsigned)flags);
	if (!rc && (!pool_set || !*pool_set || strlen(pool_set) > WIRE_NAME_MAX))
		rc = errmsg_fail(EINVAL, "the name of the pool set is empty or too long");
	if (!rc)
		rc = t.direct ? remove_direct(&t, pool_set, flags)
			      : remove_by_ssh(&t, pool_set, flags);
	return pool_result(rc);
}
