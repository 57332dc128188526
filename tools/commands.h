/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commands.h -- one function for each subcommand. argv[0] is the subcommand; the function returns
 * the exit code.
 */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

int cmd_serve(int argc, char **argv);
int cmd_put(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_ping(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_info(int argc, char **argv);

#endif
