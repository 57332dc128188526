/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <string.h>

#include "bench.h"
#include "cli.h"

static const char help[] =
	"usage: rpma bench [options] HOST[:PORT][:NAME]\n"
	"Measure latency and throughput of writes with a flush, reads and atomic writes, over sizes\n"
	"and depths. The region's data is not touched unless --overwrite permits it: the server keeps\n"
	"a scratch page of 1 MiB for this beside the file.\n"
	"\n"
	"  -w, --work LIST        write_flush_visible, write_flush_persistent, read, atomic_write,\n"
	"                         writes_flush_visible, batch_flush_visible, batch_flush_persistent\n"
	"                         (default: all that are possible)\n"
	"  -s, --size LIST        bytes per operation (default 64,4K,64K,1M)\n"
	"  -d, --depth LIST       rounds outstanding, 1 to 1024 (default 1,16); a round is an\n"
	"                         operation, or several writes and their flush\n"
	"  -b, --batch N          writes of a batch_ round, posted together (default 16)\n"
	"  -f, --flush-every N    writes of a writes_ round, posted one by one (default 64)\n"
	"  -D, --duration SECONDS of each row (default 1)\n"
	"  -c, --count N          rounds of each row, instead of --duration\n"
	"      --wait             sleep until an operation completes, instead of polling\n"
	"      --overwrite        measure in the region itself, which must be named; this destroys\n"
	"                         the bytes at its beginning\n"
	"  -r, --region NAME      the region (default: the one that is served)\n"
	"  -S, --secret-file FILE both ends prove that they know FILE's content\n"
	"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
	"  -v, --verbose          print the library's log\n"
	"  -j, --json             print the result as JSON\n"
	"  -h, --help             print this\n"
	"\n"
	"LIST is separated by commas; sizes take K, M, G, T. The ratio is that of a row's median to\n"
	"write + flush visible of the same size and depth. The default port is 7204. Exit codes:\n"
	"rpma(1).\n";

enum { OPT_WAIT = 256, OPT_OVERWRITE };

static const struct option options[] = {
	{"work", required_argument, NULL, 'w'},
	{"size", required_argument, NULL, 's'},
	{"depth", required_argument, NULL, 'd'},
	{"batch", required_argument, NULL, 'b'},
	{"flush-every", required_argument, NULL, 'f'},
	{"duration", required_argument, NULL, 'D'},
	{"count", required_argument, NULL, 'c'},
	{"wait", no_argument, NULL, OPT_WAIT},
	{"overwrite", no_argument, NULL, OPT_OVERWRITE},
	{"region", required_argument, NULL, 'r'},
	{0},
};

/* Cut the next part from a list, in place. Empty parts are returned, too. NULL: the list has no
 * further part. */
static char *opts_next(char **list)
{
	return strsep(list, ",");
}

static int opts_take_sizes(char *text, struct bench_list *list)
{
	char *part;

	list->count = 0;
	while ((part = opts_next(&text)) != NULL) {
		if (list->count == BENCH_LIST_MAX)
			return cli_usage("--size: more than %d", BENCH_LIST_MAX);
		if (!number_parse_size(part, &list->values[list->count]) ||
		    list->values[list->count++] == 0)
			return cli_usage("--size: '%s' is not a size such as 8 or 4K", part);
	}
	return CLI_OK;
}

static int opts_take_depths(char *text, struct bench_list *list)
{
	char *part;

	list->count = 0;
	while ((part = opts_next(&text)) != NULL) {
		if (list->count == BENCH_LIST_MAX)
			return cli_usage("--depth: more than %d", BENCH_LIST_MAX);
		if (!number_parse(part, 1, BENCH_DEPTH_MAX, &list->values[list->count++]))
			return cli_usage("--depth: '%s' is not a number from 1 to %d", part,
					 BENCH_DEPTH_MAX);
	}
	return CLI_OK;
}

static int opts_take_works(char *text, unsigned *works)
{
	char *part;
	size_t i;

	while ((part = opts_next(&text)) != NULL) {
		for (i = 0; i < BENCH_WORKS && strcmp(part, bench_works[i].name) != 0; i++)
			;
		if (i == BENCH_WORKS)
			return cli_usage("--work: '%s' is not a kind of work", part);
		*works |= 1u << i;
	}
	return CLI_OK;
}

static int opts_take_number(const char *option, uint64_t max, uint64_t *out)
{
	if (number_parse(optarg, 1, max, out))
		return CLI_OK;
	return cli_usage("--%s: '%s' is not a number from 1 to %" PRIu64, option, optarg, max);
}

static int opts_take_duration(struct bench_opts *opts)
{
	uint64_t seconds;
	int rc = opts_take_number("duration", 3600, &seconds);

	opts->duration_ms = rc ? 0 : seconds * 1000;
	return rc;
}

static int opts_take_option(int opt, void *arg)
{
	struct bench_opts *opts = arg;

	switch (opt) {
	case 'w':
		return opts_take_works(optarg, &opts->works);
	case 's':
		return opts_take_sizes(optarg, &opts->sizes);
	case 'd':
		return opts_take_depths(optarg, &opts->depths);
	case 'b':
		return opts_take_number("batch", 1024, &opts->batch);
	case 'f':
		return opts_take_number("flush-every", 1024, &opts->flush_every);
	case 'D':
		return opts_take_duration(opts);
	case 'c':
		return opts_take_number("count", 1000000000, &opts->count);
	case OPT_WAIT:
		opts->spin_us = 0;
		return CLI_OK;
	case OPT_OVERWRITE:
		opts->overwrite = true;
		return CLI_OK;
	default:
		return CLI_USAGE;
	}
}

static int opts_check(struct bench_opts *opts)
{
	uint64_t queue = bench_queue(opts);

	if (opts->overwrite && !opts->remote.region[0])
		return cli_usage("--overwrite needs the region's name, as in HOST:NAME");
	if (queue > BENCH_QUEUE_MAX)
		return cli_usage("%" PRIu64 " operations would be outstanding, more than %d; use "
				 "less of --depth, --batch or --flush-every",
				 queue, BENCH_QUEUE_MAX);
	opts->queue = (uint32_t)queue;
	return CLI_OK;
}

static const struct remote_command command = {help, options, opts_take_option};

int bench_parse(int argc, char **argv, struct bench_opts *opts)
{
	int rc;

	*opts = (struct bench_opts){
		.sizes = {{64, 4096, 65536, 1 << 20}, 4},
		.depths = {{1, 16}, 2},
		.batch = 16,
		.flush_every = 64,
		.duration_ms = 1000,
		.most = UINT64_MAX,
		/* time to spin before checking that the connection still exists */
		.spin_us = 1000000,
	};
	rc = remote_parse(argc, argv, &command, opts, &opts->remote);
	if (rc)
		return rc;
	if (argc - optind != 1)
		return cli_usage("expected one operand, HOST[:PORT]");
	rc = remote_take_server(argv[optind], &opts->remote);
	return rc ? rc : opts_check(opts);
}
