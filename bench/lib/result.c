/* SPDX-License-Identifier: BSD-3-Clause */
#include "result.h"

#include <inttypes.h>
#include <stdio.h>

#include "die.h"

static void result_print_case(const struct bench_case *c)
{
	printf("{\"who\":\"%s\",\"work\":\"%s\",\"link\":\"%s\",\"size\":%" PRIu64, c->who, c->work,
	       c->link, c->size);
	printf(",\"back\":%" PRIu64 ",\"depth\":%u,\"every\":%u,\"conns\":%u", c->back, c->depth,
	       c->every, c->conns);
	if (c->apart)
		printf(",\"apart\":%" PRIu64, c->apart);
	printf(",\"ini\":\"%s\",\"tgt\":\"%s\"", c->ini_polls ? "poll" : "wait",
	       c->tgt_polls ? "poll" : "wait");
	if (c->spin == CASE_SPIN_DEFAULT)
		printf(",\"spin\":\"default\"");
	else
		printf(",\"spin\":%d", c->spin);
	printf(",\"crc\":\"%s\",\"flush\":\"%s\",\"where\":\"%s\"", c->crc, c->flush, c->where);
	if (c->tgt_where)
		printf(",\"tgt_where\":\"%s\"", c->tgt_where);
}

static void result_print_times(struct samples *s)
{
	static const double percents[] = {0,  10,   25,   50,    75,    90,     95,
					  99, 99.5, 99.9, 99.95, 99.99, 99.999, 100};
	const char *comma = "";

	samples_sort(s);
	printf(",\"min_us\":%.3f,\"p50_us\":%.3f,\"p90_us\":%.3f", samples_percentile_us(s, 0),
	       samples_percentile_us(s, 50), samples_percentile_us(s, 90));
	printf(",\"p99_us\":%.3f,\"p999_us\":%.3f,\"max_us\":%.3f,\"mean_us\":%.3f,\"dist\":[",
	       samples_percentile_us(s, 99), samples_percentile_us(s, 99.9),
	       samples_percentile_us(s, 100), samples_mean_us(s));
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++, comma = ",")
		printf("%s[%g,%.3f]", comma, percents[i], samples_percentile_us(s, percents[i]));
	putchar(']');
}

void result_print(const struct bench_case *c, const struct result *r, struct samples *samples)
{
	double seconds = (double)r->ns / 1e9;

	if (!r->count || !r->ns)
		die("nothing was completed in %u ms", c->ms);
	result_print_case(c);
	printf(",\"count\":%" PRIu64 ",\"seconds\":%.6f,\"ops_s\":%.3f", r->count, seconds,
	       (double)r->count / seconds);
	if (r->bytes)
		printf(",\"bytes_s\":%.1f", (double)r->bytes / seconds);
	if (samples && samples->count)
		result_print_times(samples);
	if (r->durability)
		printf(",\"durability\":\"%s\",\"writebacks\":%" PRIu64, r->durability,
		       r->writebacks);
	if (r->local_writebacks)
		printf(",\"local_writebacks\":%" PRIu64, r->local_writebacks);
	if (r->disk_bytes)
		printf(",\"disk_bytes\":%" PRIu64, r->disk_bytes);
	if (r->calm_p99_us > 0)
		printf(",\"calm_p99_us\":%.3f", r->calm_p99_us);
	puts("}");
	if (fflush(stdout))
		die_errno("write the result");
}
