/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma info: what is here, what is there, and why. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "info.h"

static const struct remote_command command = {
	.help = "usage: rpma info [options] [PATH | HOST[:PORT]]\n"
		"Without an operand: which RDMA providers and devices this machine has, why each can be used\n"
		"or not, and what the one that is chosen can do. With a PATH: what a flush to persistence can\n"
		"do for a file there, and why. With a HOST: what the 'rpma serve' there can do, and its regions.\n"
		"\n"
		"An operand with a slash in it, or the name of something that exists here, is a PATH.\n"
		"\n"
		"  -S, --secret-file FILE prove to the server, and have it prove, to know FILE's content\n"
		"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
		"  -v, --verbose          print the library's log\n"
		"  -j, --json             print one JSON object\n"
		"  -h, --help             print this\n"
		"\n"
		"The default port is 7204. Exit codes: rpma(1).\n"};

int cmd_info(int argc, char **argv)
{
	struct remote_opts opts;
	int rc = remote_parse(argc, argv, &command, NULL, &opts);
	const char *operand = argv[optind];

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	if (argc - optind > 1)
		return cli_usage("expected one operand at most, PATH or HOST[:PORT]");
	cli_log_init(opts.verbose);
	if (!operand)
		return info_here(opts.json);
	if (strchr(operand, '/') || !access(operand, F_OK))
		return info_path(operand, opts.json);
	rc = remote_take_server(operand, &opts);
	if (!rc && opts.region[0])
		rc = cli_usage("'%s': no region is asked for here, but a server; 'rpma ls' knows "
			       "regions",
			       operand);
	return rc ? rc : info_server(&opts);
}
