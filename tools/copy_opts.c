/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses the command lines of put and get. */
#include "cli.h"
#include "copy.h"

static const char put_help[] =
	"usage: rpma put [options] FILE HOST[:PORT][:NAME]\n"
	"Copy FILE (-: standard input) into the region NAME that 'rpma serve' exports at HOST, flush\n"
	"it to persistence, and let the server read it back to verify it. The region then holds\n"
	"that file: 'rpma ls' shows it, 'rpma get' returns it.\n"
	"\n"
	"  -r, --region NAME      the region (default: the one that is served)\n"
	"  -S, --secret-file FILE both ends prove that they know FILE's content\n"
	"  -o, --offset N         write the bytes at offset N instead; the region then holds no file\n"
	"  -f, --flush-every N    flush to persistence every N bytes (default 64M; 0: at the end)\n"
	"      --resume           go on with a put of the same file that failed\n"
	"      --allow-volatile   accept memory that cannot be persisted (flushes to visibility)\n"
	"      --no-verify        do not let the server read the bytes back\n"
	"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
	"  -v, --verbose          print 'flushed up to offset X' lines and the library's log\n"
	"  -j, --json             print the summary as JSON\n"
	"  -h, --help             print this\n"
	"\n"
	"Sizes take K, M, G, T. The default port is 7204. Exit codes: rpma(1).\n";

static const char get_help[] =
	"usage: rpma get [options] HOST[:PORT][:NAME] FILE\n"
	"Copy the file that was put into the region NAME, which 'rpma serve' exports at HOST, into\n"
	"FILE, which appears when complete and verified; or the whole region, if no file was put.\n"
	"FILE may be a device or a pipe, and - is standard output.\n"
	"\n"
	"  -r, --region NAME      the region (default: the one that is served)\n"
	"  -S, --secret-file FILE both ends prove that they know FILE's content\n"
	"  -o, --offset N         copy bytes from offset N on, and not the file that was put\n"
	"  -l, --length N         copy N bytes (default: up to the region's end)\n"
	"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
	"  -v, --verbose          print the library's log\n"
	"  -j, --json             print the summary as JSON\n"
	"  -h, --help             print this\n"
	"\n"
	"Sizes take K, M, G, T. The default port is 7204. Exit codes: rpma(1).\n";

enum { OPT_ALLOW_VOLATILE = 256, OPT_NO_VERIFY, OPT_RESUME };

static const struct option put_options[] = {
	{"region", required_argument, NULL, 'r'},
	{"offset", required_argument, NULL, 'o'},
	{"flush-every", required_argument, NULL, 'f'},
	{"allow-volatile", no_argument, NULL, OPT_ALLOW_VOLATILE},
	{"no-verify", no_argument, NULL, OPT_NO_VERIFY},
	{"resume", no_argument, NULL, OPT_RESUME},
	{0},
};

static const struct option get_options[] = {
	{"region", required_argument, NULL, 'r'},
	{"offset", required_argument, NULL, 'o'},
	{"length", required_argument, NULL, 'l'},
	{0},
};

static int copy_opts_take_size(const char *option, uint64_t *out)
{
	if (number_parse_size(optarg, out))
		return CLI_OK;
	return cli_usage("%s: '%s' is not a size such as 4096, 64K or 2G", option, optarg);
}

static int copy_opts_take_option(int opt, void *arg)
{
	struct copy_opts *opts = arg;

	switch (opt) {
	case 'o':
		opts->is_raw = true;
		return copy_opts_take_size("--offset", &opts->offset);
	case 'l':
		opts->is_raw = true;
		return copy_opts_take_size("--length", &opts->length);
	case 'f':
		return copy_opts_take_size("--flush-every", &opts->flush_every);
	case OPT_ALLOW_VOLATILE:
		opts->allow_volatile = true;
		return CLI_OK;
	case OPT_NO_VERIFY:
		opts->no_verify = true;
		return CLI_OK;
	case OPT_RESUME:
		opts->resume = true;
		return CLI_OK;
	default:
		return CLI_USAGE;
	}
}

static int copy_opts_take_operands(char **argv, int count, bool is_put, struct copy_opts *opts)
{
	const char *server;

	if (count != 2)
		return cli_usage("%s operands: expected %s", count < 2 ? "missing" : "too many",
				 is_put ? "FILE HOST[:PORT][:NAME]" : "HOST[:PORT][:NAME] FILE");
	opts->file = argv[is_put ? 0 : 1];
	server = argv[is_put ? 1 : 0];
	if (opts->resume && (opts->is_raw || opts->no_verify))
		return cli_usage("--resume does not go with %s",
				 opts->is_raw ? "--offset" : "--no-verify");
	return remote_take_server(server, &opts->remote);
}

int copy_parse(int argc, char **argv, bool is_put, struct copy_opts *opts)
{
	const struct remote_command command = {.help = is_put ? put_help : get_help,
					       .options = is_put ? put_options : get_options,
					       .take = copy_opts_take_option};
	int rc;

	*opts = (struct copy_opts){.length = UINT64_MAX, .flush_every = COPY_FLUSH_EVERY};
	rc = remote_parse(argc, argv, &command, opts, &opts->remote);
	return rc ? rc : copy_opts_take_operands(argv + optind, argc - optind, is_put, opts);
}
