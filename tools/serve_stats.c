/* SPDX-License-Identifier: BSD-3-Clause */
/* What the connections have counted, when somebody asks by SIGUSR1. */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "serve.h"

static const char *name_of(uint8_t access)
{
	static const char *const names[] = {
		[HELLO_READ] = "read", [HELLO_WRITE] = "write", [HELLO_SCRATCH] = "scratch"};

	return names[access];
}

static void print_client(const struct serve_client *client, const struct tally *tally)
{
	printf("client %" PRIu64 " from %s, region '%s', %s:", client->id, client->addr,
	       client->region->name, name_of(client->request.access));
	tally_print(tally, false);
	putchar('\n');
}

static void print_client_json(const struct serve_client *client, const struct tally *tally)
{
	printf("{\"id\":%" PRIu64 ",\"addr\":", client->id);
	cli_json_string(client->addr);
	printf(",\"region\":");
	cli_json_string(client->region->name);
	printf(",\"access\":\"%s\",\"counters\":", name_of(client->request.access));
	tally_print(tally, true);
	putchar('}');
}

/* Returns how many were printed; *sum gets what they and all that are gone counted. */
static unsigned print_clients(struct serve *s, struct tally *sum)
{
	unsigned printed = 0;

	*sum = s->gone;
	for (struct serve_client *client = s->first; client; client = client->next) {
		struct tally tally = {.count = 0};

		if (client->state != SERVE_SERVED)
			continue;
		tally_add(&tally, client->conn);
		tally_add_all(sum, &tally);
		if (s->opts->json)
			fputs(printed ? "," : "", stdout);
		(s->opts->json ? print_client_json : print_client)(client, &tally);
		printed++;
	}
	return printed;
}

void serve_print_counters(struct serve *s)
{
	struct tally sum;
	unsigned now;

	if (s->opts->json)
		printf("{\"clients\":[");
	now = print_clients(s, &sum);
	printf(s->opts->json ? "],\"total\":{\"now\":%u,\"ever\":%" PRIu64 ",\"counters\":"
			     : "total, %u clients now, %" PRIu64 " ever:",
	       now, now + s->gone_count);
	tally_print(&sum, s->opts->json);
	puts(s->opts->json ? "}}" : "");
	fflush(stdout);
}
