/* SPDX-License-Identifier: BSD-3-Clause */
#include "life.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/lib/check.h"

#define SERVE_MS  20000
#define TRIES_MAX 10

#define ORDER_PAUSE_MS 20 /* pause before a refused order is repeated */

#define RETURN_MS 30000
/* longer than any hold-off, except the hold-off of a member that often leaves S */
#define HELD_OFF_S   10
#define LOOK_EACH_MS 5
#define EXPLAIN_EACH 200 /* checks between two printed explanations */

static mirror_mask life_insync(const struct life *l)
{
	static struct register_entry now;

	hosts_read(&l->hosts, &now);
	return now.record.view.insync;
}

void life_begin(struct life *l)
{
	const struct hosts_opts opts = {.count = LIFE_HOSTS,
					.size = CLIENTS_SIZE,
					.hot_slots = CLIENTS_SLOTS,
					.automatic = true};

	hosts_start(&l->hosts, &opts);
	memset(l->is_marked, 0, sizeof(l->is_marked));
	l->all = (struct clients){
		.hosts = &l->hosts, .seed = prng_next(&l->chance) % 1000000, .pause_us = 1000};
	life_recover(l);
}

/* A member that has just died counts as in-sync until the primary detects its end. So only the
 * register's record after the primary's end shows which copies are equal. */
static void life_end_whole(struct life *l)
{
	for (unsigned tries = 0;; tries++) {
		client_wait_busy(&l->all, &l->primary);
		client_end(&l->primary);
		if (life_insync(l) == LIFE_ALL)
			return;
		assert_in_range(tries, 0, TRIES_MAX);
		life_recover(l);
	}
}

void life_end(struct life *l, struct clients_counts *counts)
{
	life_end_whole(l);
	clients_judge(&l->all, counts);
	hosts_stop(&l->hosts);
}

void life_abort(struct life *l)
{
	if (l->order.pid)
		proc_kill(&l->order);
	if (l->primary.proc.pid)
		proc_kill(&l->primary.proc);
	for (unsigned i = 0; i < LIFE_HOSTS; i++)
		if (l->hosts.hosts[i].daemon.pid)
			host_kill(&l->hosts, i);
}

bool life_is_daemon_dead(struct life *l, unsigned host, int timeout_ms)
{
	struct proc *daemon = &l->hosts.hosts[host].daemon;
	int status = daemon->pid ? proc_wait(daemon, timeout_ms) : SIGKILL;

	if (status == -ETIMEDOUT)
		return false;
	if (status != SIGKILL)
		fail_msg("the daemon of host %c ends with status %#x", 'a' + (char)host,
			 (unsigned)status);
	return true;
}

bool life_restart(struct life *l, unsigned host, const char *const envs[])
{
	if (l->hosts.hosts[host].daemon.pid)
		host_kill(&l->hosts, host);
	l->is_marked[host] = envs != NULL;
	if (!envs)
		host_start(&l->hosts, host, NULL);
	return !envs || host_try_start(&l->hosts, host, envs);
}

static void life_run_tool(const struct life *l, const char *const argv[])
{
	struct proc tool;
	int status;

	if (proc_start(&tool, argv, NULL))
		fail_msg("cannot start " SYSTEM_RPMIRROR);
	status = proc_wait(&tool, SERVE_MS);
	if (status)
		fail_msg("%s %s %s ends with status %d", argv[0], argv[1], argv[2], status);
}

bool life_replace_failed(struct life *l, unsigned host)
{
	const char name[] = {(char)('a' + (char)host), '\0'};
	struct host *h = &l->hosts.hosts[host];
	const char *const replace[] = {SYSTEM_RPMIRROR,
				       "member",
				       "replace",
				       HOSTS_SET,
				       name,
				       "--socket",
				       l->hosts.hosts[l->primary.host].socket,
				       NULL};
	const char *const join[] = {
		SYSTEM_RPMIRROR,       "init", HOSTS_SET, "--join", name, "--register",
		l->hosts.register_uri, NULL};
	struct meta_super super = {0};

	life_restart(l, host, NULL);
	if (!host_read_super(&l->hosts, host, &super) || !(super.flags & META_FAILED))
		return false;
	assert_int_not_equal(l->primary.host, host);
	host_kill(&l->hosts, host);
	assert_int_equal(unlink(h->data), 0);
	assert_int_equal(unlink(h->meta), 0);
	life_run_tool(l, replace);
	life_run_tool(l, join);
	host_start(&l->hosts, host, NULL);
	return true;
}

unsigned life_some_host(struct life *l, unsigned other_than)
{
	mirror_mask insync = life_insync(l);
	unsigned host;

	do
		host = (unsigned)prng_below(&l->chance, LIFE_HOSTS);
	while (!(insync & MIRROR_BIT(host)) || host == other_than);
	return host;
}

struct client life_follow(struct life *l, unsigned host, const char *const envs[])
{
	struct client next;

	client_start(&l->all, &next, host, envs);
	proc_kill(&l->primary.proc);
	return next;
}

static void life_end_order(struct life *l)
{
	if (l->order.pid)
		proc_kill(&l->order);
}

void life_order_growth(struct life *l, unsigned host)
{
	static struct register_entry now;
	const char *const argv[] = {SYSTEM_RPMIRROR,
				    "grow",
				    HOSTS_SET,
				    l->size,
				    "--socket",
				    l->hosts.hosts[host].socket,
				    NULL};

	life_end_order(l);
	hosts_read(&l->hosts, &now);
	snprintf(l->size, sizeof(l->size), "%llu",
		 (unsigned long long)(now.record.config.size + LIFE_GROWTH));
	if (proc_start(&l->order, argv, NULL))
		fail_msg("cannot start " SYSTEM_RPMIRROR);
}

bool life_grow_until_dead(struct life *l, unsigned host, int timeout_ms)
{
	uint64_t end = clock_now_ns() + (uint64_t)timeout_ms * NSEC_PER_MS;
	bool is_dead = false, is_done = false;

	while (!is_dead && !is_done && clock_now_ns() < end) {
		life_order_growth(l, host);
		is_done = proc_wait(&l->order, timeout_ms) == 0;
		is_dead = life_is_daemon_dead(l, host, is_done ? 0 : ORDER_PAUSE_MS);
	}
	return is_dead;
}

/* Returns true if the primary's daemon reports that the member is held off. */
static bool life_is_held_off(const struct life *l, unsigned host)
{
	char command[600], text[600], waits[64];
	unsigned seconds = 0;
	FILE *tool;

	snprintf(waits, sizeof(waits), "the daemon of member %c is being contacted",
		 'a' + (char)host);
	snprintf(command, sizeof(command),
		 "exec " SYSTEM_RPMIRROR " explain " HOSTS_SET " --socket %s 2>&1",
		 l->hosts.hosts[l->primary.host].socket);
	tool = popen(command, "re");
	assert_non_null(tool);
	while (fgets(text, sizeof(text), tool)) {
		const char *next = strstr(text, waits) ? strstr(text, "next attempt is in ") : NULL;

		if (next)
			sscanf(next, "next attempt is in %u", &seconds);
	}
	pclose(tool);
	return seconds > HELD_OFF_S;
}

/*
 * The hold-off of a member doubles each time that it is excluded, unless an operator readmits it.
 * Readmit it here, instead of waiting.
 */
static void life_end_holdoffs(const struct life *l, mirror_mask insync)
{
	for (unsigned host = 0; host < LIFE_HOSTS; host++) {
		const char name[] = {(char)('a' + (char)host), '\0'};
		const char *const argv[] = {SYSTEM_RPMIRROR,
					    "resync",
					    HOSTS_SET,
					    name,
					    "--socket",
					    l->hosts.hosts[l->primary.host].socket,
					    NULL};

		if (!(insync & MIRROR_BIT(host)) && life_is_held_off(l, host))
			life_run_tool(l, argv);
	}
}

static void life_wait_whole(const struct life *l)
{
	uint64_t end = clock_now_ns() + RETURN_MS * NSEC_PER_MS;
	mirror_mask insync;

	for (unsigned looks = 1; (insync = life_insync(l)) != LIFE_ALL; looks++) {
		if (clock_now_ns() > end)
			fail_msg("in-sync are %#x for %u s", insync, RETURN_MS / 1000);
		if (looks % EXPLAIN_EACH == 0)
			life_end_holdoffs(l, insync);
		usleep(LOOK_EACH_MS * 1000);
	}
}

void life_recover(struct life *l)
{
	life_end_order(l);
	for (unsigned host = 0; host < LIFE_HOSTS; host++)
		if (l->is_marked[host] || life_is_daemon_dead(l, host, 0))
			life_restart(l, host, NULL);
	for (unsigned tries = 0; client_status(&l->primary) >= 0; tries++) {
		assert_in_range(tries, 0, TRIES_MAX);
		client_start(&l->all, &l->primary, life_some_host(l, LIFE_NO_HOST), NULL);
		if (!client_serves(&l->primary, SERVE_MS) && client_status(&l->primary) < 0)
			fail_msg("nobody becomes primary");
	}
	life_wait_whole(l);
}
