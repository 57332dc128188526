/* SPDX-License-Identifier: BSD-3-Clause */
#include <libgen.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "regions/target.h"
#include "serve.h"

static const char help[] =
	"usage: rpma serve [options] FILE...\n"
	"Export each FILE as a region of remote memory to any number of clients, until SIGINT or\n"
	"SIGTERM. SIGUSR1 prints counters, SIGHUP reads the secret file again.\n"
	"\n"
	"  -a, --addr ADDR          address to listen on (default 127.0.0.1)\n"
	"  -p, --port PORT          port to listen on (default 7204; 0: any free port)\n"
	"  -S, --secret-file FILE   serve only clients that prove they know its content\n"
	"  -r, --region NAME        name of the region (default: the file's name); a second one\n"
	"                           names the region of the next FILE, and so on\n"
	"  -s, --size N             serve the first N bytes; with --create the size of a file\n"
	"  -c, --create             make each FILE; none may exist\n"
	"  -m, --max-clients N      serve at most N clients at a time (default 256)\n"
	"      --max-per-address N  serve at most N clients from one address (default 64)\n"
	"      --allow-volatile     serve memory that cannot be persisted (tmpfs)\n"
	"  -v, --verbose            print clients as they come and go, and the library's log\n"
	"  -j, --json               announce the regions, and print counters, as JSON\n"
	"  -h, --help               print this\n"
	"\n"
	"Sizes take K, M, G, T. Exit codes: rpma(1).\n";

enum { OPT_ALLOW_VOLATILE = 256, OPT_MAX_PER_ADDRESS };

static const struct option options[] = {
	{"addr", required_argument, NULL, 'a'},
	{"port", required_argument, NULL, 'p'},
	{"secret-file", required_argument, NULL, 'S'},
	{"region", required_argument, NULL, 'r'},
	{"size", required_argument, NULL, 's'},
	{"create", no_argument, NULL, 'c'},
	{"max-clients", required_argument, NULL, 'm'},
	{"max-per-address", required_argument, NULL, OPT_MAX_PER_ADDRESS},
	{"allow-volatile", no_argument, NULL, OPT_ALLOW_VOLATILE},
	{"verbose", no_argument, NULL, 'v'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int opts_take_addr(const char *text, struct address *listen)
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

static int opts_take_port(const char *text, struct address *listen)
{
	uint64_t port;

	if (!number_parse(text, 0, 65535, &port))
		return cli_usage("--port: '%s' is not a number from 0 to 65535", text);
	snprintf(listen->port, sizeof(listen->port), "%u", (unsigned)port);
	return CLI_OK;
}

static int opts_take_region(const char *text, struct serve_opts *opts)
{
	if (!text[0] || strlen(text) > HELLO_NAME_MAX)
		return cli_usage("--region: '%s' is not a name of 1 to %d characters", text,
				 HELLO_NAME_MAX);
	if (opts->name_count == SERVER_REGIONS_MAX)
		return cli_usage("more than %d regions", SERVER_REGIONS_MAX);
	strcpy(opts->names[opts->name_count++], text);
	return CLI_OK;
}

static int opts_take_limit(const char *option, const char *text, uint64_t *limit)
{
	if (number_parse(text, 1, 100000, limit))
		return CLI_OK;
	return cli_usage("%s: '%s' is not a number from 1 to 100000", option, text);
}

static int opts_take_option(int opt, void *arg)
{
	struct serve_opts *opts = arg;

	switch (opt) {
	case 'a':
		return opts_take_addr(optarg, &opts->server.listen);
	case 'p':
		return opts_take_port(optarg, &opts->server.listen);
	case 'r':
		return opts_take_region(optarg, opts);
	case 'S':
		opts->secret_file = optarg;
		return CLI_OK;
	case 's':
		if (!number_parse_size(optarg, &opts->server.size) || opts->server.size == 0)
			return cli_usage("--size: '%s' is not a size such as 64M", optarg);
		return CLI_OK;
	case 'c':
		opts->server.create = true;
		return CLI_OK;
	case 'm':
		return opts_take_limit("--max-clients", optarg, &opts->server.max_clients);
	case OPT_MAX_PER_ADDRESS:
		return opts_take_limit("--max-per-address", optarg, &opts->server.max_per_address);
	case OPT_ALLOW_VOLATILE:
		opts->server.allow_volatile = true;
		return CLI_OK;
	case 'v':
		opts->server.verbose = true;
		return CLI_OK;
	case 'j':
		opts->json = true;
		return CLI_OK;
	default:
		return CLI_USAGE; /* getopt has already printed the error line */
	}
}

static int opts_default_name(const char *path, char *name)
{
	char copy[4096];
	const char *base;

	snprintf(copy, sizeof(copy), "%s", path);
	base = basename(copy);
	if (strlen(base) > HELLO_NAME_MAX)
		return cli_usage("the name of %s is longer than %d characters: give a --region",
				 path, HELLO_NAME_MAX);
	strcpy(name, base);
	return CLI_OK;
}

static int opts_check_name(const struct serve_opts *opts, unsigned index)
{
	for (unsigned i = 0; i < index; i++)
		if (!strcmp(opts->names[i], opts->names[index]))
			return cli_usage("two regions are named '%s': give a --region to each",
					 opts->names[i]);
	return CLI_OK;
}

static int opts_take_files(struct serve_opts *opts, char **files, int count)
{
	int rc = CLI_OK;

	if (count < 1)
		return cli_usage("expected at least one operand, FILE");
	if (count > SERVER_REGIONS_MAX)
		return cli_usage("more than %d regions", SERVER_REGIONS_MAX);
	if (opts->name_count > (unsigned)count)
		return cli_usage("there are more --region options than files");
	opts->server.files = opts->files;
	opts->server.file_count = (unsigned)count;
	for (unsigned i = 0; i < (unsigned)count && !rc; i++) {
		opts->files[i] = (struct server_file){.path = files[i], .name = opts->names[i]};
		if (i >= opts->name_count)
			rc = opts_default_name(files[i], opts->names[i]);
		if (!rc)
			rc = opts_check_name(opts, i);
	}
	return rc;
}

int serve_parse(int argc, char **argv, struct serve_opts *opts)
{
	int rc;

	*opts = (struct serve_opts){.server = {.listen = {"127.0.0.1", TARGET_PORT},
					       .max_clients = 256,
					       .max_per_address = 64}};
	rc = cli_options(argc, argv, options, help, opts_take_option, opts);
	if (rc)
		return rc;
	if (opts->server.create && opts->server.size == 0)
		return cli_usage("--create needs --size");
	return opts_take_files(opts, argv + optind, argc - optind);
}
