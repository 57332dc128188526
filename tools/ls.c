/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma ls: lists the regions of a server, and the files in them. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "cli.h"
#include "commands.h"
#include "remote.h"

static const struct remote_command command = {
	.help = "usage: rpma ls [options] HOST[:PORT][:NAME]\n"
		"List the regions that 'rpma serve' exports at HOST, or the one of that NAME: the size, and\n"
		"length, time and digest (BLAKE2b-256) of the file that 'rpma put' left there.\n"
		"\n"
		"  -S, --secret-file FILE both ends prove that they know FILE's content\n"
		"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
		"  -v, --verbose          print the library's log\n"
		"  -j, --json             print the list as JSON\n"
		"  -h, --help             print this\n"
		"\n"
		"The default port is 7204. Exit codes: rpma(1).\n"};

#define LS_TIME   32
#define LS_DIGEST (2 * 32 + 1)

static void ls_show_time(uint64_t time_ns, char text[LS_TIME])
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&seconds, &tm))
		strftime(text, LS_TIME, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void ls_show_digest(const struct rpma_file_region *r, char text[LS_DIGEST])
{
	for (size_t i = 0; i < sizeof(r->file_digest); i++)
		snprintf(text + 2 * i, 3, "%02x", r->file_digest[i]);
}

static void ls_print(const struct rpma_file_region *r)
{
	char length[32] = "-", time[LS_TIME] = "-", digest[LS_DIGEST] = "-";

	if (r->holds != RPMA_FILE_HOLDS_BYTES)
		ls_show_time(r->file_time_ns, time);
	if (r->holds != RPMA_FILE_HOLDS_BYTES && r->file_length != UINT64_MAX)
		snprintf(length, sizeof(length), "%" PRIu64, r->file_length);
	if (r->holds == RPMA_FILE_HOLDS_PARTIAL)
		snprintf(digest, sizeof(digest), "not whole");
	if (r->holds == RPMA_FILE_HOLDS_WHOLE)
		ls_show_digest(r, digest);
	printf("%-20s %12s  %-8s %12s  %-20s  %s\n", r->name, text_size(r->length).text,
	       rpma_utils_durability_2str(r->durability), length, time, digest);
}

static void ls_print_file_json(const struct rpma_file_region *r)
{
	char time[LS_TIME], digest[LS_DIGEST];

	if (r->holds == RPMA_FILE_HOLDS_BYTES) {
		printf("null");
		return;
	}
	ls_show_time(r->file_time_ns, time);
	ls_show_digest(r, digest);
	printf("{\"whole\":%s,\"time\":\"%s\",\"time_ns\":%" PRIu64,
	       r->holds == RPMA_FILE_HOLDS_WHOLE ? "true" : "false", time, r->file_time_ns);
	if (r->file_length != UINT64_MAX)
		printf(",\"length\":%" PRIu64, r->file_length);
	if (r->holds == RPMA_FILE_HOLDS_WHOLE)
		printf(",\"blake2b_256\":\"%s\"", digest);
	putchar('}');
}

static void ls_print_json(const struct rpma_file_region *r)
{
	cli_json_string("{\"region\":", r->name);
	printf(",\"size\":%" PRIu64 ",\"durability\":\"%s\",\"file\":", r->length,
	       rpma_utils_durability_2str(r->durability));
	ls_print_file_json(r);
	putchar('}');
}

static void ls_print_all(const struct rpma_file_region *regions, size_t count, bool json)
{
	if (json)
		printf("{\"regions\":[");
	else
		printf("%-20s %12s  %-8s %12s  %-20s  %s\n", "REGION", "SIZE", "DURABLE", "LENGTH",
		       "TIME", "BLAKE2B-256");
	for (size_t i = 0; i < count; i++) {
		if (json && i)
			putchar(',');
		(json ? ls_print_json : ls_print)(&regions[i]);
	}
	if (json)
		puts("]}");
}

int cmd_ls(int argc, char **argv)
{
	struct rpma_file_region regions[RPMA_FILE_REGIONS_MAX];
	struct remote_opts opts;
	size_t count = RPMA_FILE_REGIONS_MAX;
	struct rpma_file_options with;
	int rc = remote_parse(argc, argv, &command, NULL, &opts);

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	if (argc - optind != 1)
		return cli_usage("expected one operand, HOST[:PORT][:NAME]");
	rc = remote_take_server(argv[optind], &opts);
	if (rc)
		return rc;
	cli_log_init(opts.verbose);
	with = remote_file_options(&opts, 0);
	rc = remote_check(rpma_file_list(opts.target, &with, regions, &count));
	if (!rc)
		ls_print_all(regions, count, opts.json);
	return rc;
}
