/* SPDX-License-Identifier: BSD-3-Clause */
#include "monitor.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* A word or a sentence of the daemon for the line of the plugin. It has no '|', which begins the
 * performance data. */
struct monitor_text {
	char text[512];
};

static struct monitor_text monitor_get(const json_t *object, const char *key, const char *dflt)
{
	struct monitor_text t;

	snprintf(t.text, sizeof(t.text), "%s", json_text(object, key, dflt));
	text_make_printable(t.text);
	for (char *c = t.text; *c; c++)
		*c = *c == '|' ? '/' : *c;
	return t;
}

/* Returns a text for a label: without an apostrophe, which would end the label, and without an
 * equals sign. */
static struct monitor_text monitor_get_label(const json_t *object, const char *key)
{
	struct monitor_text t = monitor_get(object, key, "?");

	for (char *c = t.text; *c; c++)
		*c = strchr("'=", *c) ? '_' : *c;
	return t;
}

bool monitor_is_asked(char *const *argv)
{
	for (; *argv; argv++)
		if (!strcmp(*argv, "--check"))
			return true;
	return false;
}

static enum monitor monitor_of_set(const json_t *set)
{
	const char *health = json_text(set, "health", "down");

	if (!strcmp(health, "healthy"))
		return MONITOR_OK;
	return !strcmp(health, "degraded") ? MONITOR_WARNING : MONITOR_CRITICAL;
}

enum monitor monitor_of(const json_t *sets)
{
	enum monitor worst = MONITOR_OK;
	const json_t *set;
	size_t i;

	json_array_foreach(sets, i, set)
	{
		enum monitor one = monitor_of_set(set);

		worst = one > worst ? one : worst;
	}
	return i ? worst : MONITOR_UNKNOWN;
}

static void monitor_print_head(enum monitor state)
{
	static const char *const words[] = {"OK", "WARNING", "CRITICAL", "UNKNOWN"};

	printf("RPMIRROR %s - ", words[state]);
}

struct monitor_figures {
	size_t members, insync;
	double behind; /* number of bytes that the worst copy lacks */
	double p99_us; /* p99 of the flushes; 0: unknown */
};

static struct monitor_figures monitor_count(const json_t *set)
{
	struct monitor_figures sum = {0};
	const json_t *member;

	json_array_foreach(json_object_get(set, "members"), sum.members, member)
	{
		double behind = json_figure(member, "behind", 0);

		sum.insync += json_flag(member, "insync");
		sum.behind = behind > sum.behind ? behind : sum.behind;
		if (!strcmp(json_text(member, "role", ""), "primary"))
			sum.p99_us = json_figure(member, "flush_p99_us", 0);
	}
	return sum;
}

static void monitor_print_set(const json_t *set)
{
	struct monitor_figures sum = monitor_count(set);
	const char *health = json_text(set, "health", "down");

	printf("%s %s, %zu of %zu copies in-sync", monitor_get(set, "set", "?").text,
	       monitor_get(set, "health", "down").text, sum.insync, sum.members);
	if (!strcmp(health, "degraded") && !json_flag(set, "progressing"))
		printf(", no progress");
	if (json_text(set, "reason", NULL))
		printf(": %s", monitor_get(set, "reason", "").text);
}

/* Prints label=value[unit];warn;crit;min;max. "3:" means that values from 3 on are good. */
static void monitor_print_figures(const json_t *set)
{
	struct monitor_figures sum = monitor_count(set);
	struct monitor_text name = monitor_get_label(set, "set");

	printf(" '%s.insync'=%zu;%zu:;%.0f:;0;%zu", name.text, sum.insync, sum.members,
	       json_figure(set, "min_copies", 1), sum.members);
	printf(" '%s.behind'=%.0fB;;;0", name.text, sum.behind);
	if (sum.p99_us > 0)
		printf(" '%s.flush_p99'=%.6fs;%.3f;;0", name.text, sum.p99_us / 1e6,
		       json_figure(set, "slow_ms", 0) / 1e3);
	printf(" '%s.blocked'=%.1fs;;;0", name.text, json_figure(set, "blocked_s", 0));
}

void monitor_print(const json_t *sets)
{
	const json_t *set;
	size_t i;

	monitor_print_head(monitor_of(sets));
	json_array_foreach(sets, i, set)
	{
		printf(i ? "; " : "");
		monitor_print_set(set);
	}
	if (!i) {
		puts("this host has no set");
		return;
	}
	printf(" |");
	json_array_foreach(sets, i, set) monitor_print_figures(set);
	putchar('\n');
}

void monitor_print_failure(const struct failure *f)
{
	monitor_print_head(MONITOR_UNKNOWN);
	printf("%s%s%s\n", f->text, f->hint[0] ? "; " : "", f->hint);
}
