/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h -- makes ssh's arguments, and the command for the target's shell. */
#ifndef RPMEM_COMMAND_H
#define RPMEM_COMMAND_H

#include "rpmem/target.h"

#define COMMAND_TEXT 16384

struct command {
	char *argv[10]; /* points to the members below, and to env_ssh() */
	char where[TARGET_TEXT];
	char text[COMMAND_TEXT]; /* the command for the shell */
};

/* Use the next command of RPMEM_CMD, to serve a pool. ipv4: make ssh use IPv4. 0 or EINVAL. */
int command_serve(struct command *cmd, const struct target *target, bool ipv4);
/* The same for the removal of a pool; flags: RPMEM_REMOVE_*. */
int command_remove(struct command *cmd, const struct target *target, bool ipv4, const char *set,
		   int flags);

#endif
