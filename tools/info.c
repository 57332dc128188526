/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma info: reports about this machine, a path, or a server. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "info.h"

struct info_opts {
	bool check, openmetrics;
	const char *textfile;
};

enum { OPT_CHECK = 256, OPT_OPENMETRICS, OPT_TEXTFILE };

static const struct option options[] = {
	{"check", no_argument, NULL, OPT_CHECK},
	{"openmetrics", no_argument, NULL, OPT_OPENMETRICS},
	{"textfile", required_argument, NULL, OPT_TEXTFILE},
	{0},
};

static int info_take(int opt, void *arg)
{
	struct info_opts *info = arg;

	switch (opt) {
	case OPT_CHECK:
		info->check = true;
		return CLI_OK;
	case OPT_OPENMETRICS:
		info->openmetrics = true;
		return CLI_OK;
	case OPT_TEXTFILE:
		info->textfile = optarg;
		return CLI_OK;
	default:
		return CLI_USAGE;
	}
}

static const struct remote_command command = {
	.options = options,
	.take = info_take,
	.help = "usage: rpma info [options] [PATH | HOST[:PORT]]\n"
		"Without an operand: which RDMA providers and devices this machine has, why each can be used\n"
		"or not, and what the one that is chosen can do. With a PATH: what a flush to persistence can\n"
		"do for a file there, and why. With a HOST: what the 'rpma serve' there can do, and its regions.\n"
		"\n"
		"An operand with a slash in it, or the name of something that exists here, is a PATH.\n"
		"\n"
		"      --openmetrics      print a HOST's counters as metrics for Prometheus\n"
		"      --textfile FILE    write them to a file for node_exporter's textfile collector\n"
		"      --check            one line and exit code for monitoring plugins\n"
		"  -S, --secret-file FILE both ends prove that they know FILE's content\n"
		"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
		"  -v, --verbose          print the library's log\n"
		"  -j, --json             print one JSON object\n"
		"  -h, --help             print this\n"
		"\n"
		"The default port is 7204. Exit codes: rpma(1).\n"};

static bool info_wants_server(const struct info_opts *info)
{
	return info->check || info->openmetrics || info->textfile;
}

static bool info_is_path(const struct info_opts *info, const char *operand)
{
	return !info_wants_server(info) && (strchr(operand, '/') || !access(operand, F_OK));
}

static int info_take_server(const char *operand, struct remote_opts *opts)
{
	int rc = remote_take_server(operand, opts);

	if (!rc && opts->region[0])
		rc = cli_usage(
			"'%s' names a region, but this command takes a server; 'rpma ls' lists "
			"regions",
			operand);
	return rc;
}

/* operands: an array that ends with NULL. */
static int info_check_usage(const struct info_opts *info, char *const *operands,
			    struct remote_opts *opts)
{
	if (info->check + info->openmetrics + !!info->textfile > 1)
		return cli_usage("--check, --openmetrics and --textfile do not go together");
	if (operands[0] && operands[1])
		return cli_usage("expected one operand at most, PATH or HOST[:PORT]");
	if (!operands[0])
		return info_wants_server(info)
			       ? cli_usage("--check, --openmetrics and --textfile need an operand, "
					   "HOST[:PORT]")
			       : CLI_OK;
	return info_is_path(info, operands[0]) ? CLI_OK : info_take_server(operands[0], opts);
}

static int info_run(const struct info_opts *info, const struct remote_opts *opts,
		    const char *operand)
{
	if (info->check)
		return info_check(opts);
	if (info_wants_server(info))
		return info_metrics(opts, info->textfile);
	if (!operand)
		return info_here(opts->json);
	return info_is_path(info, operand) ? info_path(operand, opts->json) : info_server(opts);
}

int cmd_info(int argc, char **argv)
{
	struct info_opts info = {0};
	struct remote_opts opts;
	int rc = remote_parse(argc, argv, &command, &info, &opts);

	if (rc < 0)
		return CLI_OK;
	if (!rc)
		rc = info_check_usage(&info, argv + optind, &opts);
	if (rc)
		return info.check ? (int)INFO_UNKNOWN : rc;
	cli_log_init(opts.verbose);
	return info_run(&info, &opts, argv[optind]);
}
