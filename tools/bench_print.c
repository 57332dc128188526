/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "bench.h"
#include "cli.h"

static void print_head_json(const struct bench *b)
{
	const struct session_transport *via = &b->transport;

	cli_json_string("{\"server\":", b->s.server);
	cli_json_string(",\"region\":", b->s.region.region);
	printf(",\"scratch\":%s,\"durability\":\"%s\",\"device\":",
	       b->opts->overwrite ? "false" : "true",
	       rpma_utils_durability_2str(b->s.region.durability));
	cli_json_string("", via->device);
	printf(",\"first_link\":\"%s\",\"crc\":%s,\"wait\":%s,\"rows\":[", via->link,
	       via->crc ? "true" : "false", b->opts->spin_us ? "false" : "true");
}

void bench_print_head(const struct bench *b)
{
	const struct session_transport *via = &b->transport;

	if (b->opts->remote.json) {
		print_head_json(b);
		return;
	}
	printf("bench %s, region '%s'%s, durability %s\n", b->s.server, b->s.region.region,
	       b->opts->overwrite ? "" : " (its scratch page)",
	       rpma_utils_durability_2str(b->s.region.durability));
	printf("device %s, CRC %s, %s for completions; microseconds\n", via->device,
	       via->crc ? "on" : "off", b->opts->spin_us ? "polling" : "waiting");
	printf("%-27s %9s %9s %9s %9s %8s %6s\n", "", "p50", "p99", "p99.9", "ops/s", "MB/s",
	       "ratio");
}

void bench_print_group(const struct bench *b, uint64_t size, uint64_t depth)
{
	if (b->opts->remote.json)
		return;
	progress_pause();
	printf("%s, depth %" PRIu64 "\n", text_size(size).text, depth);
	progress_resume();
}

static void print_name(const struct bench_work *work, uint32_t writes, char *text, size_t size)
{
	switch (work->shape) {
	case BENCH_BATCH:
		snprintf(text, size, "batch of %u, %s", writes, work->text);
		break;
	case BENCH_STREAM:
		snprintf(text, size, "%u %s", writes, work->text);
		break;
	case BENCH_SINGLE:
		snprintf(text, size, "%s", work->text);
		break;
	}
}

static void print_row_json(const struct bench *b, const struct bench_row *row, double ops_s)
{
	printf("%s{\"work\":\"%s\",\"size\":%" PRIu64 ",\"depth\":%u,\"writes\":%u,"
	       "\"count\":%" PRIu64 ",\"seconds\":%.6f,",
	       b->row ? "," : "", row->work->name, row->size, row->depth, row->writes,
	       b->samples.count, b->seconds);
	printf("\"p50_us\":%.3f,\"p99_us\":%.3f,\"p999_us\":%.3f,\"ops_s\":%.0f,\"bytes_s\":%.0f",
	       latency_permille_us(&b->samples, 500), latency_permille_us(&b->samples, 990),
	       latency_permille_us(&b->samples, 999), ops_s, ops_s * (double)row->size);
	if (b->visible_us > 0)
		printf(",\"ratio\":%.3f", latency_permille_us(&b->samples, 500) / b->visible_us);
	putchar('}');
}

/* Remove the bar before the text, so that the bar is not between two rows or inside a row. */
static void print_row_text(const struct bench *b, const struct bench_row *row, double ops_s)
{
	double p50_us = latency_permille_us(&b->samples, 500);
	char text[64], ratio[16] = "";

	print_name(row->work, row->writes, text, sizeof(text));
	if (b->visible_us > 0)
		snprintf(ratio, sizeof(ratio), "%.2f", p50_us / b->visible_us);
	progress_pause();
	printf("  %-25s %9.2f %9.2f %9.2f %9.0f %8.1f %6s\n", text, p50_us,
	       latency_permille_us(&b->samples, 990), latency_permille_us(&b->samples, 999), ops_s,
	       ops_s * (double)row->size / 1e6, ratio);
	fflush(stdout);
	progress_resume();
}

void bench_print_row(const struct bench *b, const struct bench_row *row)
{
	double ops_s = (double)(b->samples.count * row->writes) / b->seconds;

	(b->opts->remote.json ? print_row_json : print_row_text)(b, row, ops_s);
}

void bench_print_impossible(const struct bench *b, const struct bench_work *work, const char *why)
{
	char text[64];

	if (b->opts->remote.json)
		return;
	print_name(work, bench_writes(b->opts, work), text, sizeof(text));
	progress_pause();
	printf("  %-25s not possible: %s\n", text, why);
	progress_resume();
}

/* Report the link. Two ends on one host change to shared memory after some messages, so rows may
 * have used either link. */
void bench_print_end(const struct bench *b)
{
	struct session_transport now;

	session_get_transport(&b->s, &now);
	if (b->opts->remote.json)
		printf("],\"link\":\"%s\"}\n", now.link);
	else if (strcmp(now.link, b->transport.link) != 0)
		printf("link %s, then %s\n", b->transport.link, now.link);
	else
		printf("link %s\n", now.link);
}
