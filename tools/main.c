/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "cli.h"
#include "commands.h"

static const char help[] =
	"usage: rpma COMMAND [options] ...\n"
	"Remote persistent memory from the command line, with or without RDMA hardware.\n"
	"\n"
	"  rpma serve FILE...          export files as remote memory\n"
	"  rpma put FILE HOST:NAME     copy a file into remote memory and flush it to persistence\n"
	"  rpma get HOST:NAME FILE     copy it back, or any remote memory, into a file\n"
	"  rpma ls HOST                list the regions of a server, and the files that they hold\n"
	"  rpma ping HOST[:PORT]       measure the latency of writes, flushes and reads\n"
	"  rpma bench HOST[:PORT]      measure latency and throughput over sizes and depths\n"
	"  rpma info [PATH | HOST]     what this machine, a path or a server can do, and why\n"
	"\n"
	"'rpma COMMAND --help' shows more, and so do the manual pages: rpma(1), rpma-serve(1) ...\n";

static const struct {
	const char *name, *full_name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{"serve", "rpma serve", cmd_serve}, {"put", "rpma put", cmd_put},
	{"get", "rpma get", cmd_get},       {"ls", "rpma ls", cmd_ls},
	{"ping", "rpma ping", cmd_ping},    {"bench", "rpma bench", cmd_bench},
	{"info", "rpma info", cmd_info},
};

static int main_refuse_command(const char *name)
{
	struct nearest n = {.word = name, .prefix = ""};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		nearest_offer(&n, commands[i].name);
	return cli_usage("there is no command '%s'%s", name, nearest_hint(&n));
}

static int main_run_command(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[0], commands[i].name))
			continue;
		cli_begin(commands[i].full_name);
		/* getopt prints "<argv[0]>: unrecognized option ..." itself, so argv[0] gets the
		 * full name */
		argv[0] = (char *)commands[i].full_name;
		return commands[i].run(argc, argv);
	}
	return main_refuse_command(argv[0]);
}

static int main_run(int argc, char **argv)
{
	if (argc < 2)
		return cli_usage("a command is missing");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		fputs(help, stdout);
	else if (!strcmp(argv[1], "--version"))
		puts("rpma " RPMA_TOOL_VERSION);
	else
		return main_run_command(argc - 1, argv + 1);
	return CLI_OK;
}

/*
 * Open a replacement for each closed standard descriptor: otherwise the next opened file would get
 * its number, and messages would be written to that file. The replacement cannot be read (input) or
 * written (output), like a closed descriptor.
 */
static int main_occupy_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
			return cli_fail(CLI_FILE, "cannot open /dev/null: %s", strerror(errno));
	return CLI_OK;
}

int main(int argc, char **argv)
{
	int rc = main_occupy_standard_descriptors();
	const char *why;

	signal(SIGXFSZ, SIG_IGN); /* report the limit on file sizes as an ordinary error */
	if (!rc)
		rc = main_run(argc, argv);
	why = fflush(stdout) ? strerror(errno) : NULL;

	/* fflush() does not report a write that failed earlier. */
	if (!why && ferror(stdout))
		why = "a part of it is lost";
	if (why && !rc)
		return cli_fail(CLI_FILE, "cannot write the output: %s", why);
	return rc;
}
