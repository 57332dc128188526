/* SPDX-License-Identifier: BSD-3-Clause */
/* The events that mirror_calls causes while calls are in progress. */
#include <sys/wait.h>
#include <unistd.h>

#include "calls_events.h"
#include "system/lib/check.h"

#define PATIENCE_S 60
#define PAUSE_US   25000
#define GROWN      "20971520"

/* Run the tool with a time limit. Returns its exit code; its output is in the file "said". */
static int tool_within(const struct hosts *h, unsigned host, unsigned limit_s, const char *command)
{
	char line[1400];

	snprintf(line, sizeof(line), "'%s' %s --timeout %u --socket %s >%s/said 2>&1",
		 SYSTEM_RPMIRROR, command, limit_s, h->hosts[host].socket, h->folder);
	return WEXITSTATUS(system(line));
}

static void tool_must(const struct hosts *h, unsigned host, const char *command)
{
	int code = tool_within(h, host, PATIENCE_S, command);

	if (code)
		fail_msg("%s: exit code %d, see %s/said", command, code, h->folder);
}

static void event_demote(struct hosts *h, unsigned number)
{
	tool_must(h, 0, "demote " HOSTS_SET);
}

/* Fence another copy, which then returns. With an odd number, fence the primary by an operator's
 * mistake. */
static void event_fence(struct hosts *h, unsigned number)
{
	if (number % 2) {
		tool_within(h, 1, 1, "fence " HOSTS_SET " a");
		return;
	}
	tool_must(h, 0, "fence " HOSTS_SET " c");
	usleep(PAUSE_US);
	tool_must(h, 0, "resume " HOSTS_SET " c");
}

/* Order a promotion. With an even number the order has no effect, because the primary is alive.
 * With an odd number the primary's daemon is killed first, so that the lease ends. */
static void event_promote(struct hosts *h, unsigned number)
{
	if (number % 2 == 0) {
		assert_int_not_equal(tool_within(h, 1, 1, "promote " HOSTS_SET " b"), 0);
		return;
	}
	host_kill(h, 0);
	tool_must(h, 1, "promote " HOSTS_SET " b");
	host_start(h, 0, NULL);
}

static void event_force(struct hosts *h, unsigned number)
{
	tool_must(h, 1, "promote " HOSTS_SET " b --force");
}

static void event_grow(struct hosts *h, unsigned number)
{
	tool_must(h, 0, "grow " HOSTS_SET " " GROWN);
}

static void event_replace(struct hosts *h, unsigned number)
{
	char command[700];

	tool_must(h, 0, "fence " HOSTS_SET " c");
	host_kill(h, 2);
	assert_int_equal(unlink(h->hosts[2].data), 0);
	assert_int_equal(unlink(h->hosts[2].meta), 0);
	tool_must(h, 0, "member replace " HOSTS_SET " c");
	snprintf(command, sizeof(command), "init " HOSTS_SET " --join c --register %s",
		 h->register_uri);
	tool_must(h, 2, command);
	host_start(h, 2, NULL);
}

static void event_none(struct hosts *h, unsigned number)
{
}

static void event_restart(struct hosts *h, unsigned number)
{
	if (number % 2)
		host_stop(h, 0);
	else
		host_kill(h, 0);
	host_start(h, 0, NULL);
}

const struct event events[EVENTS] = {
	{.name = "demote", .strike = event_demote},
	{.name = "fence", .strike = event_fence, .ends_by_word = true},
	{.name = "promote", .strike = event_promote},
	{.name = "force", .strike = event_force, .ends_by_word = true},
	{.name = "grow", .strike = event_grow},
	{.name = "replace", .strike = event_replace},
	{.name = "unmap", .strike = event_none, .is_unmap = true},
	{.name = "restart", .strike = event_restart},
};
