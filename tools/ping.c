/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma ping: how long a write, a write with a flush, and a read take. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"
#include "commands.h"
#include "latency.h"
#include "client.h"

#define WARM_UP       10
#define DEFAULT_COUNT 1000
/* Without --count a slow disk shortens the run instead of making it long. */
#define DEFAULT_LIMIT_NS 2000000000ull
#define SPIN_US          200

struct ping_opts {
	struct remote_opts remote;
	uint64_t count; /* 0: the default, within the time limit */
	uint64_t size;
};

struct ping {
	const struct ping_opts *opts;
	struct session s;
	struct rpma_mr_local *mr;
	void *buf;
};

static const char help[] =
	"usage: rpma ping [options] HOST[:PORT][:NAME]\n"
	"Measure the latency of writes, flushes and reads. The region's data is not touched:\n"
	"the server keeps a scratch page for this beside the file.\n"
	"\n"
	"  -c, --count N          operations of each kind (default 1000, or fewer in 2 s)\n"
	"  -s, --size N           bytes per operation (default 8)\n"
	"  -r, --region NAME      the region (default: the one that is served)\n"
	"  -S, --secret-file FILE prove to the server, and have it prove, to know FILE's content\n"
	"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
	"  -v, --verbose          print the library's log\n"
	"  -j, --json             print the result as JSON\n"
	"  -h, --help             print this\n"
	"\n"
	"Sizes take K, M, G, T. The default port is 7204. Exit codes: rpma(1).\n";

static int ping_wait_one(struct ping *p)
{
	return client_reap(&p->s, SPIN_US);
}

static int ping_do_write(struct ping *p)
{
	int rc = rpma_write(p->s.conn, p->s.remote, 0, p->mr, 0, p->opts->size,
			    RPMA_F_COMPLETION_ALWAYS, NULL);

	return rc ? client_post_failed(&p->s, "write to", rc) : ping_wait_one(p);
}

static int ping_write_and_flush(struct ping *p, enum rpma_flush_type type)
{
	int rc = rpma_write(p->s.conn, p->s.remote, 0, p->mr, 0, p->opts->size,
			    RPMA_F_COMPLETION_ON_ERROR, NULL);

	if (rc)
		return client_post_failed(&p->s, "write to", rc);
	rc = rpma_flush(p->s.conn, p->s.remote, 0, p->opts->size, type, RPMA_F_COMPLETION_ALWAYS,
			NULL);
	return rc ? client_post_failed(&p->s, "flush at", rc) : ping_wait_one(p);
}

static int ping_do_flush_visible(struct ping *p)
{
	return ping_write_and_flush(p, RPMA_FLUSH_TYPE_VISIBILITY);
}

static int ping_do_flush_persistent(struct ping *p)
{
	return ping_write_and_flush(p, RPMA_FLUSH_TYPE_PERSISTENT);
}

static int ping_do_read(struct ping *p)
{
	int rc = rpma_read(p->s.conn, p->mr, 0, p->s.remote, 0, p->opts->size,
			   RPMA_F_COMPLETION_ALWAYS, NULL);

	return rc ? client_post_failed(&p->s, "read from", rc) : ping_wait_one(p);
}

static const struct kind {
	const char *name, *json_name;
	int (*run)(struct ping *p);
	int needs; /* a usage bit of the remote region */
} kinds[] = {
	{"write", "write", ping_do_write, 0},
	{"write + flush visible", "write_flush_visible", ping_do_flush_visible,
	 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY},
	{"write + flush persistent", "write_flush_persistent", ping_do_flush_persistent,
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT},
	{"read", "read", ping_do_read, 0},
};

static bool ping_is_possible(const struct ping *p, const struct kind *kind)
{
	int usage = 0;

	rpma_mr_remote_get_flush_type(p->s.remote, &usage);
	return (usage & kind->needs) == kind->needs;
}

static int ping_warm_up(struct ping *p, const struct kind *kind)
{
	int rc = CLI_OK;

	for (int i = 0; i < WARM_UP && !rc; i++)
		rc = kind->run(p);
	return rc;
}

static int ping_measure(struct ping *p, const struct kind *kind, struct latency *samples)
{
	uint64_t count = p->opts->count ? p->opts->count : DEFAULT_COUNT;
	uint64_t limit = p->opts->count ? UINT64_MAX : DEFAULT_LIMIT_NS;
	uint64_t begun, before, after;
	int rc = ping_warm_up(p, kind);

	begun = after = latency_now_ns();
	while (!rc && samples->count < count && after - begun < limit) {
		before = latency_now_ns();
		rc = kind->run(p);
		after = latency_now_ns();
		if (!rc)
			latency_add(samples, after - before);
	}
	return rc;
}

static void ping_print_head(const struct ping *p)
{
	const struct hello_reply *region = &p->s.region;

	if (p->opts->remote.json) {
		printf("{\"server\":");
		cli_json_string(p->s.server);
		printf(",\"region\":");
		cli_json_string(region->region);
		printf(",\"durability\":\"%s\",\"size\":%" PRIu64,
		       rpma_utils_durability_2str(region->durability), p->opts->size);
		return;
	}
	printf("ping %s, region '%s', durability %s, %" PRIu64 " bytes; microseconds\n",
	       p->s.server, region->region, rpma_utils_durability_2str(region->durability),
	       p->opts->size);
	printf("%-26s %8s %10s %10s %10s %10s\n", "", "count", "min", "median", "p99", "max");
}

static void ping_print_kind(const struct ping *p, const struct kind *kind,
			    const struct latency *samples)
{
	if (samples->count == 0) {
		if (!p->opts->remote.json)
			printf("%-26s not possible: the server cannot persist this memory\n",
			       kind->name);
		return;
	}
	printf(p->opts->remote.json ? ",\"%s\":{\"count\":%" PRIu64
				      ",\"min_us\":%.1f,\"median_us\":%.1f,"
				      "\"p99_us\":%.1f,\"max_us\":%.1f}"
				    : "%-26s %8" PRIu64 " %10.1f %10.1f %10.1f %10.1f\n",
	       p->opts->remote.json ? kind->json_name : kind->name, samples->count,
	       latency_permille_us(samples, 0), latency_permille_us(samples, 500),
	       latency_permille_us(samples, 990), latency_permille_us(samples, 1000));
}

static int ping_run_kind(struct ping *p, const struct kind *kind)
{
	struct latency samples;
	int rc = CLI_OK;

	latency_reset(&samples);
	if (ping_is_possible(p, kind))
		rc = ping_measure(p, kind, &samples);
	if (!rc)
		ping_print_kind(p, kind, &samples);
	return rc;
}

/* A connection of one host goes over to shared memory after some messages. */
static void ping_print_link(const struct ping *p)
{
	struct session_transport via;

	session_get_transport(&p->s, &via);
	printf(p->opts->remote.json ? ",\"link\":\"%s\"}\n" : "link %s\n", via.link);
}

static int ping_run_all(struct ping *p)
{
	int rc = CLI_OK;

	ping_print_head(p);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !rc; i++)
		rc = ping_run_kind(p, &kinds[i]);
	if (!rc)
		ping_print_link(p);
	return rc;
}

/* Once the server has said how large an operation may be. */
static int ping_make_buffer(struct ping *p)
{
	p->buf = aligned_alloc(4096, (p->opts->size + 4095) / 4096 * 4096);
	if (!p->buf)
		return cli_fail(CLI_TRANSFER, "out of memory for %" PRIu64 " bytes", p->opts->size);
	memset(p->buf, 0x5a, p->opts->size);
	return client_register(&p->s, p->buf, p->opts->size, &p->mr);
}

static int ping_connect_and_run(struct ping *p)
{
	int rc = client_open(&p->s, &p->opts->remote, HELLO_SCRATCH, 4);

	if (rc)
		return rc;
	if (p->opts->size > p->s.region.size)
		rc = cli_fail(CLI_REFUSED,
			      "--size %" PRIu64 " is larger than the server's scratch "
			      "page of %s",
			      p->opts->size, text_bytes(p->s.region.size).text);
	if (!rc)
		rc = ping_make_buffer(p);
	if (!rc)
		rc = ping_run_all(p);
	rpma_mr_dereg(&p->mr);
	session_close(&p->s);
	free(p->buf);
	return rc;
}

static const struct option options[] = {
	{"count", required_argument, NULL, 'c'},
	{"size", required_argument, NULL, 's'},
	{"region", required_argument, NULL, 'r'},
	{"secret-file", required_argument, NULL, 'S'},
	{"timeout", required_argument, NULL, 't'},
	{"verbose", no_argument, NULL, 'v'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int ping_take_option(int opt, void *arg)
{
	struct ping_opts *opts = arg;

	switch (opt) {
	case 'c':
		if (!number_parse(optarg, 1, 10000000, &opts->count))
			return cli_usage("--count: '%s' is not a number from 1 to 10000000",
					 optarg);
		return CLI_OK;
	case 's':
		if (!number_parse_size(optarg, &opts->size) || opts->size == 0)
			return cli_usage("--size: '%s' is not a size such as 8 or 4K", optarg);
		return CLI_OK;
	default:
		return remote_take_option(opt, &opts->remote);
	}
}

int cmd_ping(int argc, char **argv)
{
	struct ping_opts opts = {.remote = remote_defaults(), .size = 8};
	struct ping ping = {.opts = &opts};
	int rc = cli_options(argc, argv, options, help, ping_take_option, &opts);

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	if (argc - optind != 1)
		return cli_usage("expected one operand, HOST[:PORT]");
	rc = remote_take_server(argv[optind], &opts.remote);
	if (rc)
		return rc;
	cli_log_init(opts.remote.verbose);
	return ping_connect_and_run(&ping);
}
