/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the counters of the connections on SIGUSR1. */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "serve.h"

struct stats {
	bool json;
	unsigned printed;
	struct counters sum;
};

static const char *stats_access_name(enum hello_access access)
{
	static const char *const names[] = {
		[HELLO_READ] = "read", [HELLO_WRITE] = "write", [HELLO_SCRATCH] = "scratch"};

	return names[access];
}

/* Prints " name=value ..." or "{"name":value,...}". */
static void stats_print_counters(const struct counters *sum, bool json)
{
	if (json)
		putchar('{');
	for (size_t i = 0; i < sum->count; i++)
		printf(json ? "%s\"%s\":%" PRIu64 : "%s%s=%" PRIu64,
		       !json ? " "
		       : i   ? ","
			     : "",
		       sum->counters[i].name, sum->counters[i].value);
	if (json)
		putchar('}');
}

static void stats_print_client(const struct server_client_info *client)
{
	printf("client %" PRIu64 " from %s, region '%s', %s:", client->id, client->addr,
	       client->region, stats_access_name(client->access));
	stats_print_counters(client->counters, false);
	putchar('\n');
}

static void stats_print_client_json(const struct server_client_info *client)
{
	printf("{\"id\":%" PRIu64 ",\"addr\":", client->id);
	cli_json_string("", client->addr);
	cli_json_string(",\"region\":", client->region);
	printf(",\"access\":\"%s\",\"counters\":", stats_access_name(client->access));
	stats_print_counters(client->counters, true);
	putchar('}');
}

static void stats_add_client(void *arg, const struct server_client_info *client)
{
	struct stats *stats = arg;

	counters_add(&stats->sum, client->counters);
	if (stats->json)
		fputs(stats->printed ? "," : "", stdout);
	(stats->json ? stats_print_client_json : stats_print_client)(client);
	stats->printed++;
}

void serve_print_counters(const struct server *server, bool json)
{
	struct stats stats = {.json = json};
	uint64_t gone = server_get_gone(server, &stats.sum);

	if (json)
		printf("{\"clients\":[");
	server_for_each_client(server, stats_add_client, &stats);
	printf(json ? "],\"total\":{\"now\":%u,\"ever\":%" PRIu64 ",\"counters\":"
		    : "total, %u clients now, %" PRIu64 " ever:",
	       stats.printed, stats.printed + gone);
	stats_print_counters(&stats.sum, json);
	puts(json ? "}}" : "");
	fflush(stdout);
}
