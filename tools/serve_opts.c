/* SPDX-License-Identifier: BSD-3-Clause */
#include <getopt.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "serve.h"

static const char help[] =
	"usage: rpma serve [options] FILE\n"
	"Export FILE as remote memory to any number of clients, until SIGINT or SIGTERM.\n"
	"\n"
	"  -a, --addr ADDR        listen here (default 127.0.0.1; there is no authentication)\n"
	"  -p, --port PORT        and on this port (default 7204; 0 takes a free one)\n"
	"  -r, --region NAME      name of the region (default: the file's name)\n"
	"  -s, --size N           serve the first N bytes; with --create the size of the file\n"
	"  -c, --create           make FILE; it must not exist\n"
	"  -m, --max-clients N    refuse more clients than that at a time (default 256)\n"
	"      --allow-volatile   serve memory that cannot be persisted (tmpfs)\n"
	"  -v, --verbose          print clients as they come and go, and the library's log\n"
	"  -j, --json             announce the region as JSON\n"
	"  -h, --help             print this\n"
	"\n"
	"Sizes take K, M, G, T. Exit codes: rpma(1).\n";

enum { OPT_ALLOW_VOLATILE = 256 };

static const struct option options[] = {
	{"addr", required_argument, NULL, 'a'},
	{"port", required_argument, NULL, 'p'},
	{"region", required_argument, NULL, 'r'},
	{"size", required_argument, NULL, 's'},
	{"create", no_argument, NULL, 'c'},
	{"max-clients", required_argument, NULL, 'm'},
	{"allow-volatile", no_argument, NULL, OPT_ALLOW_VOLATILE},
	{"verbose", no_argument, NULL, 'v'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int take_addr(const char *text, struct address *listen)
{
	size_t len = strlen(text);

	if (text[0] == '[' && len > 2 && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len == 0 || len >= sizeof(listen->host))
		return cli_usage("--addr: '%s' is not an address", text);
	memcpy(listen->host, text, len);
	listen->host[len] = '\0';
	return CLI_OK;
}

static int take_port(const char *text, struct address *listen)
{
	uint64_t port;

	if (!cli_parse_number(text, 0, 65535, &port))
		return cli_usage("--port: '%s' is not a number from 0 to 65535", text);
	snprintf(listen->port, sizeof(listen->port), "%u", (unsigned)port);
	return CLI_OK;
}

static int take_region(const char *text, char *region)
{
	if (!text[0] || strlen(text) > HELLO_NAME_MAX)
		return cli_usage("--region: '%s' is not a name of 1 to %d characters", text,
				 HELLO_NAME_MAX);
	strcpy(region, text);
	return CLI_OK;
}

static int take_option(int opt, struct serve_opts *opts)
{
	switch (opt) {
	case 'a':
		return take_addr(optarg, &opts->listen);
	case 'p':
		return take_port(optarg, &opts->listen);
	case 'r':
		return take_region(optarg, opts->region);
	case 's':
		if (!cli_parse_size(optarg, &opts->file.size) || opts->file.size == 0)
			return cli_usage("--size: '%s' is not a size such as 64M", optarg);
		return CLI_OK;
	case 'c':
		opts->file.create = true;
		return CLI_OK;
	case 'm':
		if (!cli_parse_number(optarg, 1, 100000, &opts->max_clients))
			return cli_usage("--max-clients: '%s' is not a number from 1 to 100000",
					 optarg);
		return CLI_OK;
	case OPT_ALLOW_VOLATILE:
		opts->allow_volatile = true;
		return CLI_OK;
	case 'v':
		opts->verbose = true;
		return CLI_OK;
	case 'j':
		opts->json = true;
		return CLI_OK;
	default:
		return CLI_USAGE; /* getopt has printed the line */
	}
}

static int default_region(struct serve_opts *opts)
{
	char copy[4096];
	const char *name;

	if (opts->region[0])
		return CLI_OK;
	snprintf(copy, sizeof(copy), "%s", opts->file.path);
	name = basename(copy);
	if (strlen(name) > HELLO_NAME_MAX)
		return cli_usage("the file's name is longer than %d characters: give a --region",
				 HELLO_NAME_MAX);
	strcpy(opts->region, name);
	return CLI_OK;
}

int serve_parse(int argc, char **argv, struct serve_opts *opts)
{
	int opt, rc;

	*opts = (struct serve_opts){.listen = {"127.0.0.1", CLI_DEFAULT_PORT}, .max_clients = 256};
	while ((opt = getopt_long(argc, argv, "a:p:r:s:cm:vjh", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return -1;
		}
		rc = take_option(opt, opts);
		if (rc)
			return rc;
	}
	if (argc - optind != 1)
		return cli_usage("expected one operand, FILE");
	opts->file.path = argv[optind];
	if (opts->file.create && opts->file.size == 0)
		return cli_usage("--create needs --size");
	return default_region(opts);
}
