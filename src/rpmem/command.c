/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmem/command.h"

#include <errno.h>
#include <librpmem.h>
#include <stdio.h>
#include <string.h>

#include "rpmem/env.h"
#include "rpmem/errmsg.h"

/* Set the arguments of ssh. After "--" ssh treats neither the host nor the command as an option. */
static void command_set_argv(struct command *cmd, const struct target *target, bool ipv4)
{
	int n = 0;

	snprintf(cmd->where, sizeof(cmd->where), "%s%s%s", target->user, target->user[0] ? "@" : "",
		 target->host);
	cmd->argv[n++] = (char *)env_ssh();
	if (target->port[0]) {
		cmd->argv[n++] = (char *)"-p";
		cmd->argv[n++] = (char *)target->port;
	}
	cmd->argv[n++] = (char *)"-T";
	if (ipv4)
		cmd->argv[n++] = (char *)"-4";
	cmd->argv[n++] = (char *)"-oBatchMode=yes";
	cmd->argv[n++] = (char *)"--";
	cmd->argv[n++] = cmd->where;
	cmd->argv[n++] = cmd->text;
	cmd->argv[n] = NULL;
}

static bool command_append(struct command *cmd, const char *text, size_t len)
{
	size_t used = strlen(cmd->text);

	if (used + len >= sizeof(cmd->text))
		return false;
	memcpy(cmd->text + used, text, len);
	cmd->text[used + len] = '\0';
	return true;
}

/* Quote one word for the target's shell; a word without special characters stays unquoted. */
static bool command_append_word(struct command *cmd, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-_./+,:=@%";
	bool ok = command_append(cmd, " ", 1);

	if (*word && strspn(word, plain) == strlen(word))
		return ok && command_append(cmd, word, strlen(word));
	ok = ok && command_append(cmd, "'", 1);
	while (*word) {
		size_t len = strcspn(word, "'");

		ok = ok && command_append(cmd, word, len);
		word += len;
		if (*word == '\'') {
			ok = ok && command_append(cmd, "'\\''", 4);
			word++;
		}
	}
	return ok && command_append(cmd, "'", 1);
}

int command_serve(struct command *cmd, const struct target *target, bool ipv4)
{
	command_set_argv(cmd, target, ipv4);
	if (!env_next_command(cmd->text, sizeof(cmd->text)))
		return errmsg_fail(EINVAL, "RPMEM_CMD is longer than 4095 characters");
	return 0;
}

int command_remove(struct command *cmd, const struct target *target, bool ipv4, const char *set,
		   int flags)
{
	int rc = command_serve(cmd, target, ipv4);
	bool ok;

	if (rc)
		return rc;
	ok = command_append_word(cmd, "--remove") && command_append_word(cmd, set);
	if (flags & RPMEM_REMOVE_FORCE)
		ok = ok && command_append_word(cmd, "--force");
	if (flags & RPMEM_REMOVE_POOL_SET)
		ok = ok && command_append_word(cmd, "--pool-set");
	return ok ? 0 : errmsg_fail(EINVAL, "the name of the pool set is too long");
}
