/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h -- makes the arguments of ssh, and the command for the target's shell. */
#ifndef RPMEM_COMMAND_H
#define RPMEM_COMMAND_H

#include "rpmem/target.h"

#define COMMAND_TEXT 16384

struct command {
	char *argv[10]; /* points to the members below, and to env_ssh() */
	char where[TARGET_TEXT];
	char text[COMMAND_TEXT]; /* the command for the target's shell */
};

/* Make the command that serves a pool, from the next command in RPMEM_CMD. ipv4: make ssh use IPv4.
 * Returns 0 or EINVAL. */
int command_serve(struct command *cmd, const struct target *target, bool ipv4);
/* Make the command that removes a pool. flags: RPMEM_REMOVE_*. */
int command_remove(struct command *cmd, const struct target *target, bool ipv4, const char *set,
		   int flags);

#endif
