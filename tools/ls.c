/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma ls: the regions of a server, and the files that were put there. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cli.h"
#include "client.h"
#include "commands.h"

static const char help[] =
	"usage: rpma ls [options] HOST[:PORT][:NAME]\n"
	"List the regions that 'rpma serve' exports at HOST, or the one of that NAME: the size, and\n"
	"length, time and digest (BLAKE2b-256) of the file that 'rpma put' left there.\n"
	"\n"
	"  -S, --secret-file FILE prove to the server, and have it prove, to know FILE's content\n"
	"  -t, --timeout SECONDS  give up when the server is silent that long (default 60)\n"
	"  -v, --verbose          print the library's log\n"
	"  -j, --json             print the list as JSON\n"
	"  -h, --help             print this\n"
	"\n"
	"The default port is 7204. Exit codes: rpma(1).\n";

static const struct option options[] = {
	{"secret-file", required_argument, NULL, 'S'},
	{"timeout", required_argument, NULL, 't'},
	{"verbose", no_argument, NULL, 'v'},
	{"json", no_argument, NULL, 'j'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

struct ls_opts {
	struct client_opts client;
	bool json;
};

#define LS_TIME   32
#define LS_DIGEST (2 * HELLO_DIGEST + 1)

static void ls_show_time(uint64_t time_ns, char text[LS_TIME])
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&seconds, &tm))
		strftime(text, LS_TIME, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void ls_show_digest(const uint8_t digest[HELLO_DIGEST], char text[LS_DIGEST])
{
	for (int i = 0; i < HELLO_DIGEST; i++)
		snprintf(text + (size_t)(2 * i), 3, "%02x", digest[i]);
}

static void ls_print(const struct hello_entry *e)
{
	const struct hello_content *content = &e->content;
	char length[32] = "-", time[LS_TIME] = "-", digest[LS_DIGEST] = "-";

	if (content->state != HELLO_CONTENT_RAW)
		ls_show_time(content->time_ns, time);
	if (content->state != HELLO_CONTENT_RAW && content->length != HELLO_LENGTH_UNKNOWN)
		snprintf(length, sizeof(length), "%" PRIu64, content->length);
	if (content->state == HELLO_CONTENT_PARTIAL)
		snprintf(digest, sizeof(digest), "not whole");
	if (content->state == HELLO_CONTENT_WHOLE)
		ls_show_digest(content->digest, digest);
	printf("%-20s %12s  %-8s %12s  %-20s  %s\n", e->region, text_size(e->size).text,
	       rpma_utils_durability_2str(e->durability), length, time, digest);
}

static void ls_print_content_json(const struct hello_content *content)
{
	char time[LS_TIME], digest[LS_DIGEST];

	if (content->state == HELLO_CONTENT_RAW) {
		printf("null");
		return;
	}
	ls_show_time(content->time_ns, time);
	ls_show_digest(content->digest, digest);
	printf("{\"whole\":%s,\"time\":\"%s\",\"time_ns\":%" PRIu64,
	       content->state == HELLO_CONTENT_WHOLE ? "true" : "false", time, content->time_ns);
	if (content->length != HELLO_LENGTH_UNKNOWN)
		printf(",\"length\":%" PRIu64, content->length);
	if (content->state == HELLO_CONTENT_WHOLE)
		printf(",\"blake2b_256\":\"%s\"", digest);
	putchar('}');
}

static void ls_print_json(const struct hello_entry *e)
{
	printf("{\"region\":");
	cli_json_string(e->region);
	printf(",\"size\":%" PRIu64 ",\"durability\":\"%s\",\"file\":", e->size,
	       rpma_utils_durability_2str(e->durability));
	ls_print_content_json(&e->content);
	putchar('}');
}

/* Those of that name (""; all). */
static int ls_print_list(const struct ls_opts *opts, const struct session *s,
			 const struct hello_list *list)
{
	const char *name = opts->client.session.region;
	unsigned count = 0;

	if (opts->json)
		printf("{\"regions\":[");
	else
		printf("%-20s %12s  %-8s %12s  %-20s  %s\n", "REGION", "SIZE", "DURABLE", "LENGTH",
		       "TIME", "BLAKE2B-256");
	for (unsigned i = 0; i < list->count; i++) {
		if (name[0] && strcmp(name, list->entries[i].region))
			continue;
		if (opts->json && count)
			putchar(',');
		(opts->json ? ls_print_json : ls_print)(&list->entries[i]);
		count++;
	}
	if (opts->json)
		puts("]}");
	return count || !name[0]
		       ? CLI_OK
		       : cli_fail(CLI_REFUSED, "%s does not serve a region '%s'", s->server, name);
}

static int ls_run(const struct ls_opts *opts)
{
	struct client_opts client = opts->client;
	struct hello_list list;
	struct session s;
	int rc;

	client.session.region = "";
	rc = client_open(&s, &client);
	if (rc)
		return rc;
	rc = client_list(&s, &list);
	if (!rc)
		rc = ls_print_list(opts, &s, &list);
	session_close(&s);
	return rc;
}

int cmd_ls(int argc, char **argv)
{
	struct ls_opts opts = {.client = client_defaults(HELLO_LIST, 2)};
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "S:t:vjh", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return CLI_OK;
		}
		opts.json |= opt == 'j';
		rc = opt == 'j' ? CLI_OK : client_take_option(opt, &opts.client);
		if (rc)
			return rc;
	}
	if (argc - optind != 1)
		return cli_usage("expected one operand, HOST[:PORT][:NAME]");
	rc = client_take_server(argv[optind], &opts.client);
	if (rc)
		return rc;
	cli_log_init(opts.client.verbose);
	return ls_run(&opts);
}
