/* SPDX-License-Identifier: BSD-3-Clause */
#include "progress.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

#define BAR_MAX         30
#define BAR_MIN         5
#define INTERVAL_US     100000
#define COLUMNS_DEFAULT 80
#define MIB             (1 << 20)

static pthread_mutex_t progress_lock = PTHREAD_MUTEX_INITIALIZER;
static struct progress *progress_current;

static uint64_t progress_now_us(void)
{
	return clock_now_ns() / NSEC_PER_US;
}

/* Get the width each time, because the user may resize the terminal. */
static unsigned progress_columns(void)
{
	struct winsize size;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col == 0)
		return COLUMNS_DEFAULT;
	return size.ws_col;
}

/* Write " ETA 1:02:03", or nothing if the estimate is not possible. */
static void progress_eta(const struct progress *p, double seconds, char *text, size_t size)
{
	double left = p->done ? seconds / (double)p->done * (double)(p->total - p->done) : -1;
	unsigned s = left >= 0 && left < 360000 ? (unsigned)(left + 0.5) : 0;

	if (left < 0 || left >= 360000)
		snprintf(text, size, " ETA --:--");
	else if (s >= 3600)
		snprintf(text, size, " ETA %u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(text, size, " ETA %u:%02u", s / 60, s % 60);
}

/* Write " [####    ]", or nothing if the line has too little space left. */
static void progress_bar(const struct progress *p, size_t room, char *text, size_t size)
{
	static const char marks[] = "##############################";
	int width = room < BAR_MAX + 3 ? (int)room - 3 : BAR_MAX;

	text[0] = '\0';
	if (width >= BAR_MIN)
		snprintf(text, size, " [%-*.*s]", width,
			 (int)((double)p->done / (double)p->total * width), marks);
}

/* If the line has too little space, leave out the bar first, then the rate, then the estimate. */
void progress_line(const struct progress *p, double seconds, unsigned columns, char *line,
		   size_t size)
{
	char head[64], rate[48] = "", eta[32] = "", bar[BAR_MAX + 4] = "";
	size_t room = columns ? columns - 1 : 0, used;

	if (!p->is_time)
		snprintf(rate, sizeof(rate), " %.1f MiB/s",
			 (double)p->done / (seconds + 1e-9) / MIB);
	if (p->total) {
		snprintf(head, sizeof(head), " %3d%%",
			 (int)((double)p->done / (double)p->total * 100));
		progress_eta(p, seconds, eta, sizeof(eta));
	} else {
		snprintf(head, sizeof(head), " %.1f MiB", (double)p->done / MIB);
	}
	used = strlen(p->verb) + strlen(head);
	if (used + strlen(eta) > room)
		eta[0] = '\0';
	if (used + strlen(eta) + strlen(rate) > room)
		rate[0] = '\0';
	used += strlen(eta) + strlen(rate);
	if (p->total && used < room)
		progress_bar(p, room - used, bar, sizeof(bar));
	snprintf(line, room + 1 < size ? room + 1 : size, "%s%s%s%s%s", p->verb, bar, head, rate,
		 eta);
}

static void progress_draw(struct progress *p)
{
	char line[256];

	progress_line(p, progress_seconds(p), progress_columns(), line, sizeof(line));
	fprintf(stderr, "\r%s\033[K", line);
	p->shown_us = progress_now_us();
	p->drawn = true;
}

void progress_begin(struct progress *p, const char *verb, uint64_t total)
{
	pthread_mutex_lock(&progress_lock);
	*p = (struct progress){.verb = verb, .total = total, .begun_us = progress_now_us()};
	p->on_terminal = isatty(STDERR_FILENO);
	progress_current = p;
	pthread_mutex_unlock(&progress_lock);
}

double progress_seconds(const struct progress *p)
{
	uint64_t until = p->ended_us ? p->ended_us : progress_now_us();

	return (double)(until - p->begun_us) / 1e6 + 1e-9;
}

void progress_show(struct progress *p, uint64_t done)
{
	if (!p->on_terminal) {
		p->done = done;
		return;
	}
	pthread_mutex_lock(&progress_lock);
	p->done = done;
	if (progress_now_us() - p->shown_us >= INTERVAL_US)
		progress_draw(p);
	pthread_mutex_unlock(&progress_lock);
}

void progress_end(struct progress *p)
{
	pthread_mutex_lock(&progress_lock);
	if (p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = false;
	if (progress_current == p)
		progress_current = NULL;
	if (!p->ended_us)
		p->ended_us = progress_now_us();
	pthread_mutex_unlock(&progress_lock);
}

void progress_pause(void)
{
	pthread_mutex_lock(&progress_lock);
	if (progress_current && progress_current->drawn)
		fputs("\r\033[K", stderr);
}

void progress_resume(void)
{
	if (progress_current && progress_current->drawn)
		progress_draw(progress_current);
	pthread_mutex_unlock(&progress_lock);
}
