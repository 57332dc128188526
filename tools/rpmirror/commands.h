/* SPDX-License-Identifier: BSD-3-Clause */
/* commands.h -- the commands: each parses its arguments and returns the exit code. */
#ifndef RPMIRROR_COMMANDS_H
#define RPMIRROR_COMMANDS_H

int cmd_init(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_events(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_promote(int argc, char **argv);
int cmd_demote(int argc, char **argv);
int cmd_resync(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_resolve(int argc, char **argv);
int cmd_member(int argc, char **argv);
int cmd_grow(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_fence(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_meta(int argc, char **argv);

#endif
