/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma ping: measures the duration of a write, of a write with a flush, and of a read, as bench
 * does, but one operation at a time. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "bench.h"
#include "cli.h"
#include "commands.h"

static const char help[] =
	"usage: rpma ping [options] HOST[:PORT][:NAME]\n"
	"Measure the latency of writes, flushes and reads. The region's data is not touched:\n"
	"the server keeps a scratch page for this beside the file.\n"
	"\n"
	"  -c, --count N          operations of each kind (default 1000, or fewer in 2 s)\n"
	"  -s, --size N           bytes per operation (default 8)\n"
	"  -r, --region NAME      the region (default: the one that is served)\n"
	"  -S, --secret-file FILE both ends prove that they know FILE's content\n"
	"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
	"  -v, --verbose          print the library's log\n"
	"  -j, --json             print the result as JSON\n"
	"  -h, --help             print this\n"
	"\n"
	"Sizes take K, M, G, T. The default port is 7204. Exit codes: rpma(1).\n";

static int ping_post_write(struct bench *b, const struct bench_row *row, uint64_t nr)
{
	int rc = rpma_write(b->s.conn, b->s.remote, 0, b->mr, 0, row->size,
			    RPMA_F_COMPLETION_ALWAYS, NULL);

	(void)nr;
	return rc ? client_post_failed(&b->s, "write to", rc) : CLI_OK;
}

static const struct bench_work ping_write = {
	.name = "write", .text = "write", .post = ping_post_write};

static const struct bench_work *const ping_works[] = {&ping_write, &bench_works[BENCH_VISIBLE],
						      &bench_works[BENCH_PERSISTENT],
						      &bench_works[BENCH_READ]};

static void ping_print_head(const struct bench *b)
{
	const struct hello_reply *region = &b->s.region;

	if (b->opts->remote.json) {
		cli_json_string("{\"server\":", b->s.server);
		cli_json_string(",\"region\":", region->region);
		printf(",\"durability\":\"%s\",\"size\":%" PRIu64,
		       rpma_utils_durability_2str(region->durability), b->room);
		return;
	}
	printf("ping %s, region '%s', durability %s, %" PRIu64 " bytes; microseconds\n",
	       b->s.server, region->region, rpma_utils_durability_2str(region->durability),
	       b->room);
	printf("%-26s %8s %10s %10s %10s %10s\n", "", "count", "min", "median", "p99", "max");
}

static void ping_print_row(const struct bench *b, const struct bench_work *work)
{
	const struct latency *samples = &b->samples;

	printf(b->opts->remote.json ? ",\"%s\":{\"count\":%" PRIu64
				      ",\"min_us\":%.1f,\"median_us\":%.1f,"
				      "\"p99_us\":%.1f,\"max_us\":%.1f}"
				    : "%-26s %8" PRIu64 " %10.1f %10.1f %10.1f %10.1f\n",
	       b->opts->remote.json ? work->name : work->text, samples->count,
	       latency_permille_us(samples, 0), latency_permille_us(samples, 500),
	       latency_permille_us(samples, 990), latency_permille_us(samples, 1000));
}

static int ping_run_one(struct bench *b, const struct bench_work *work)
{
	struct bench_row row = {.work = work, .size = b->room, .depth = 1, .writes = 1};
	const char *why_not = bench_why_not(b, work);
	int rc;

	if (why_not) {
		if (!b->opts->remote.json)
			printf("%-26s not possible: %s\n", work->text, why_not);
		return CLI_OK;
	}
	rc = bench_measure(b, &row);
	if (!rc)
		ping_print_row(b, work);
	return rc;
}

static int ping_run_all(struct bench *b)
{
	struct session_transport via;
	int rc = CLI_OK;

	ping_print_head(b);
	for (size_t i = 0; i < sizeof(ping_works) / sizeof(ping_works[0]) && !rc; i++)
		rc = ping_run_one(b, ping_works[i]);
	/* Get the transport after the run: two ends on one host change to shared memory after some
	 * messages. */
	session_get_transport(&b->s, &via);
	if (!rc)
		printf(b->opts->remote.json ? ",\"link\":\"%s\"}\n" : "link %s\n", via.link);
	return rc;
}

static int ping_connect_and_run(struct bench *b)
{
	uint64_t size = b->opts->sizes.values[0];
	int rc = bench_connect(b);

	if (rc)
		return rc;
	b->room = size;
	if (size > b->s.region.size)
		rc = cli_fail(CLI_REFUSED,
			      "--size %" PRIu64 " is larger than the server's scratch "
			      "page of %s",
			      size, text_bytes(b->s.region.size).text);
	if (!rc)
		rc = bench_make_buffer(b);
	if (!rc)
		rc = ping_run_all(b);
	bench_disconnect(b);
	return rc;
}

static const struct option options[] = {
	{"count", required_argument, NULL, 'c'},
	{"size", required_argument, NULL, 's'},
	{"region", required_argument, NULL, 'r'},
	{0},
};

static int ping_take_option(int opt, void *arg)
{
	struct bench_opts *opts = arg;

	switch (opt) {
	case 'c':
		if (!number_parse(optarg, 1, 10000000, &opts->count))
			return cli_usage("--count: '%s' is not a number from 1 to 10000000",
					 optarg);
		return CLI_OK;
	case 's':
		if (!number_parse_size(optarg, &opts->sizes.values[0]) ||
		    opts->sizes.values[0] == 0)
			return cli_usage("--size: '%s' is not a size such as 8 or 4K", optarg);
		return CLI_OK;
	default:
		return CLI_USAGE;
	}
}

static const struct remote_command command = {help, options, ping_take_option};

int cmd_ping(int argc, char **argv)
{
	/* Without --count, the run ends after 2 s even if a slow disk has done fewer rounds. */
	struct bench_opts opts = {
		.queue = 4, .sizes = {{8}, 1}, .most = 1000, .duration_ms = 2000, .spin_us = 200};
	static struct bench bench;
	int rc = remote_parse(argc, argv, &command, &opts, &opts.remote);

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	if (argc - optind != 1)
		return cli_usage("expected one operand, HOST[:PORT]");
	rc = remote_take_server(argv[optind], &opts.remote);
	if (rc)
		return rc;
	cli_log_init(opts.remote.verbose);
	bench.opts = &opts;
	return ping_connect_and_run(&bench);
}
