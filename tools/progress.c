/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"

#define BAR_WIDTH   30
#define INTERVAL_US 100000

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void progress_begin(struct progress *p, const char *verb, uint64_t total)
{
	*p = (struct progress){.verb = verb, .total = total, .begun_us = now_us()};
	p->on_terminal = isatty(STDERR_FILENO);
}

double progress_seconds(const struct progress *p)
{
	uint64_t until = p->ended_us ? p->ended_us : now_us();

	return (double)(until - p->begun_us) / 1e6 + 1e-9;
}

static void draw_bar(const struct progress *p, uint64_t done)
{
	static const char bar[] = "##############################";
	int filled = (int)((double)done / (double)p->total * BAR_WIDTH);

	fprintf(stderr, "\r%s [%-*.*s] %3d%%", p->verb, BAR_WIDTH, filled, bar,
		(int)((double)done / (double)p->total * 100));
}

void progress_show(struct progress *p, uint64_t done)
{
	uint64_t now;

	if (!p->on_terminal)
		return;
	now = now_us();
	if (now - p->shown_us < INTERVAL_US)
		return;
	if (p->total)
		draw_bar(p, done);
	else
		fprintf(stderr, "\r%s %10.1f MiB", p->verb, (double)done / (1 << 20));
	fprintf(stderr, " %8.1f MiB/s", (double)done / progress_seconds(p) / (1 << 20));
	p->shown_us = now;
	p->drawn = true;
}

void progress_end(struct progress *p)
{
	if (p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = false;
	if (!p->ended_us)
		p->ended_us = now_us();
}
