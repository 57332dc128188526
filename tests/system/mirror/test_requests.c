/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that the tool sends to the daemon as JSON at the UNIX socket. */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mirror/core/view.h"
#include "player.h"
#include "system/lib/cases.h"
#include "system/lib/check.h"

static struct player a = PLAYER_NONE, b = PLAYER_NONE, tool = PLAYER_NONE;
static struct register_entry now;

static int teardown(void **state)
{
	player_close(&tool);
	player_close(&b);
	player_close(&a);
	return hosts_teardown(state);
}

static json_t *tool_receive(struct player *p)
{
	static char buf[PACKET_MAX];
	struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
	json_error_t error;
	json_t *in;
	ssize_t n;

	if (poll(&pfd, 1, PLAYER_WAIT_MS) != 1)
		fail_msg("no answer came");
	n = recv(p->fd, buf, sizeof(buf), 0);
	assert_true(n > 0);
	in = json_loadb(buf, (size_t)n, 0, &error);
	assert_non_null(in);
	return in;
}

static json_t *tool_ask(struct player *p, const char *text)
{
	assert_int_equal(send(p->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	return tool_receive(p);
}

/* Send the request. Returns the code of the refusal, or 0. */
static int tool_code(struct player *p, const char *text)
{
	json_t *in = tool_ask(p, text);
	json_t *code = json_object_get(json_object_get(in, "error"), "code");
	int n = code ? (int)json_integer_value(code) : 0;

	assert_int_equal(json_is_true(json_object_get(in, "ok")), n == 0);
	json_decref(in);
	return n;
}

static const char *text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Returns the code of the refusal, whose message must contain this text. */
static int refused_as(struct player *p, const char *text, const char *message)
{
	json_t *in = tool_ask(p, text), *error = json_object_get(in, "error");
	int code = (int)json_integer_value(json_object_get(error, "code"));

	if (!strstr(text_of(error, "message"), message))
		fail_msg("'%s' does not say '%s'", text_of(error, "message"), message);
	json_decref(in);
	return code;
}

static json_t *first_set(json_t *status)
{
	return json_array_get(json_object_get(status, "sets"), 0);
}

static void wait_until_copies_are_known(struct player *p, unsigned members)
{
	for (;;) {
		json_t *in = tool_ask(p, "{\"op\":\"status\"}");
		json_t *list = json_object_get(first_set(in), "members");
		unsigned known = 0;

		for (unsigned i = 0; i < json_array_size(list); i++)
			known += strcmp(text_of(json_array_get(list, i), "copy"), "unknown") != 0;
		json_decref(in);
		if (known == members)
			return;
		usleep(20000);
	}
}

static void wait_until_primary_is(struct player *p, const char *name)
{
	for (bool is = false; !is; usleep(20000)) {
		json_t *in = tool_ask(p, "{\"op\":\"status\"}");
		const char *primary = text_of(first_set(in), "primary");

		is = primary && !strcmp(primary, name);
		json_decref(in);
	}
}

/* Wait until the daemon of this host has read from the register that the set is served. */
static void wait_until_it_serves(struct player *p)
{
	for (bool is = false; !is; usleep(20000)) {
		json_t *in = tool_ask(p, "{\"op\":\"status\"}");

		is = !strcmp(text_of(first_set(in), "phase"), "serving");
		json_decref(in);
	}
}

static void every_host_reports_the_status_of_all(void **state)
{
	json_t *in, *set, *member;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	for (unsigned i = 0; i < 3; i++) {
		player_open(&tool, &hosts, i);
		wait_until_copies_are_known(&tool, 3);
		wait_until_it_serves(&tool);
		in = tool_ask(&tool, "{\"op\":\"status\",\"set\":\"orders\"}");
		set = first_set(in);
		assert_string_equal(text_of(set, "set"), "orders");
		assert_string_equal(text_of(set, "primary"), "a");
		assert_string_equal(text_of(set, "phase"), "serving");
		assert_int_equal(json_integer_value(json_object_get(set, "epoch")), 1);
		assert_int_equal(json_object_get(set, "pid") != NULL, i == 0);
		member = json_array_get(json_object_get(set, "members"), i);
		assert_true(json_is_true(json_object_get(member, "local")));
		assert_string_equal(text_of(member, "link"), "local");
		json_decref(in);
		player_close(&tool);
	}
}

#define SETTINGS(text) "{\"op\":\"settings\",\"set\":\"orders\",\"settings\":{" text "}}"

static json_t *wait_until_a_time_is_shown(void)
{
	for (;; usleep(20000)) {
		json_t *in = tool_ask(&tool, "{\"op\":\"status\"}");
		json_t *members = json_object_get(first_set(in), "members");

		for (unsigned i = 0; i < json_array_size(members); i++)
			if (json_object_get(json_array_get(members, i), "flush_p50_us"))
				return in;
		json_decref(in);
	}
}

/* Only the daemon of the primary's host returns the report of the primary's process. */
static void a_report_is_shown_of_the_primary_alone(void **state)
{
	static struct packet out;
	json_t *in, *members, *primary;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	memset(&out, 0, sizeof(out));
	out.type = PACKET_STATUS;
	out.report.status.role = MIRROR_ROLE_PRIMARY;
	out.report.status.p50_us = 12;
	assert_true(player_answer(&a, &out));
	player_open(&tool, &hosts, 0);
	in = wait_until_a_time_is_shown();
	members = json_object_get(first_set(in), "members");
	primary = json_array_get(members, 0);
	assert_non_null(json_object_get(primary, "flush_p50_us"));
	assert_string_equal(text_of(primary, "role"), "primary");
	assert_string_equal(text_of(json_array_get(members, 1), "role"), "secondary");
	json_decref(in);
}

static void what_cannot_be_is_refused_with_its_code(void **state)
{
	static const struct {
		const char *text;
		int code;
	} cases[] = {
		{"{", 2},
		{"{}", 2},
		{"{\"op\":\"dance\"}", 2},
		{"{\"op\":7}", 2},
		{"{\"op\":\"status\",\"colour\":1}", 2},
		{"{\"op\":\"status\",\"set\":7}", 2},
		{"{\"op\":\"status\",\"set\":\"nowhere\"}", 1},
		{"{\"op\":\"status\",\"op\":\"status\"}", 2},
		{"{\"op\":\"demote\"}", 2},
		{"{\"op\":\"demote\",\"set\":\"orders\",\"timeout_ms\":0}", 2},
		/* refused, because there is no primary */
		{"{\"op\":\"demote\",\"set\":\"orders\"}", 1},
		{"{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"z\"}", 1},
		/* refused, because member b is not on this host */
		{"{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\"}", 1},
		/* refused, because no process waits for the role */
		{"{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"a\"}", 1},
		{"{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"a\",\"force\":1}", 2},
		{"{\"op\":\"member-remove\",\"set\":\"orders\",\"member\":\"z\"}", 1},
		{"{\"op\":\"member-add\",\"set\":\"orders\",\"member\":{\"name\":\"c\"}}", 2},
		{"{\"op\":\"member-add\",\"set\":\"orders\",\"member\":\"c\"}", 2},
		{"{\"op\":\"resync\",\"set\":\"orders\",\"member\":\"b\",\"from\":\"a\"}", 2},
		{"{\"op\":\"pause\",\"set\":\"orders\",\"member\":\"z\"}", 1},
		{SETTINGS("\"hosts\":{\"z\":{\"host\":\"127.0.0.2\",\"port\":7}}"), 2},
		{SETTINGS("\"hosts\":{\"b\":{\"port\":7}}"), 2},
		{SETTINGS("\"hosts\":{\"b\":{\"host\":\"\",\"port\":7}}"), 2},
		{SETTINGS("\"hosts\":{\"b\":{\"host\":\"127.0.0.2\",\"port\":0}}"), 2},
		{SETTINGS("\"hosts\":{\"b\":{\"host\":\"127.0.0.2\",\"port\":65536}}"), 2},
		/* the size that the set already has */
		{"{\"op\":\"grow\",\"set\":\"orders\",\"size\":8388608}", 0},
		{"{\"op\":\"grow\",\"set\":\"orders\",\"size\":4194304}", 2},
		{"{\"op\":\"grow\",\"set\":\"orders\",\"size\":8388609}", 2},
	};

	player_open(&tool, &hosts, 0);
	wait_until_copies_are_known(&tool, 2);
	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		int code = tool_code(&tool, cases[i].text);

		if (code != cases[i].code)
			fail_msg("%s: %d and not %d", cases[i].text, code, cases[i].code);
	}
}

static void a_demotion_is_asked_of_the_primary(void **state)
{
	static const char ask[] = "{\"op\":\"demote\",\"set\":\"orders\"}";
	static struct packet out;
	json_t *in;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	player_open(&tool, &hosts, 0);
	assert_int_equal(send(tool.fd, ask, strlen(ask), 0), strlen(ask));
	assert_int_equal(player_expect(&a, PACKET_ORDER)->order.order, PACKET_ORDER_DEMOTE);
	memset(&out, 0, sizeof(out));
	out.type = PACKET_ORDERED;
	out.id = a.in.id;
	assert_true(player_answer(&a, &out));
	in = tool_receive(&tool);
	assert_true(json_is_true(json_object_get(in, "ok")));
	json_decref(in);
	/* The primary is replaced while the request waits for its answer. */
	assert_int_equal(send(tool.fd, ask, strlen(ask), 0), strlen(ask));
	player_expect(&a, PACKET_ORDER);
	out.id = a.in.id;
	out.ordered.status = PACKET_EPOCH;
	assert_true(player_answer(&a, &out));
	in = tool_receive(&tool);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(in, "error"), "code")),
			 6);
	json_decref(in);
	/* This primary never answers. */
	assert_int_equal(tool_code(&tool, "{\"op\":\"demote\",\"set\":\"orders\","
					  "\"timeout_ms\":200}"),
			 8);
}

static void an_order_names_its_member(void **state)
{
	static const char ask[] = "{\"op\":\"pause\",\"set\":\"orders\",\"member\":\"b\"}";
	static struct packet out;
	json_t *in;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	player_open(&tool, &hosts, 0);
	assert_int_equal(send(tool.fd, ask, strlen(ask), 0), strlen(ask));
	assert_int_equal(player_expect(&a, PACKET_ORDER)->order.order, PACKET_ORDER_PAUSE);
	assert_int_equal(a.in.order.member, 1);
	memset(&out, 0, sizeof(out));
	out.type = PACKET_ORDERED;
	out.id = a.in.id;
	assert_true(player_answer(&a, &out));
	in = tool_receive(&tool);
	assert_true(json_is_true(json_object_get(in, "ok")));
	json_decref(in);
}

/* The request is sent to the host of the last member. Its daemon also asks the other daemon. */
static void a_format_that_a_member_lacks_is_refused(void **state)
{
	player_open(&tool, &hosts, 1);
	wait_until_copies_are_known(&tool, 2);
	assert_int_equal(refused_as(&tool, SETTINGS("\"format\":3"), "of member a understands"), 1);
}

static void a_set_grows_when_each_copy_has_room(void **state)
{
	static const char ask[] = "{\"op\":\"grow\",\"set\":\"orders\",\"size\":16777216}";
	struct stat st;

	player_open(&tool, &hosts, 0);
	wait_until_copies_are_known(&tool, 2);
	assert_int_equal(tool_code(&tool, ask), 0);
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.config.size, 16777216);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(stat(hosts.hosts[i].data, &st), 0);
		assert_int_equal(st.st_size, 16777216);
	}
}

static void an_operator_promotes_a_waiting_process(void **state)
{
	static const char ask[] = "{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\"}";
	static struct packet out = {.type = PACKET_MAP, .map = {.flags = PACKET_MAP_WAIT}};
	json_t *in;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_recover(&a, &now);
	host_kill(&hosts, 0); /* the alive key stays, and the lease is long */
	player_close(&a);

	player_open(&a, &hosts, 1);
	snprintf(out.map.set, sizeof(out.map.set), HOSTS_SET);
	player_send(&a, &out);
	player_open(&tool, &hosts, 1);
	wait_until_copies_are_known(&tool, 1);
	wait_until_primary_is(&tool, "a");
	assert_int_equal(tool_code(&tool, "{\"op\":\"fence\",\"set\":\"orders\",\"member\":\"a\"}"),
			 0);
	assert_int_equal(send(tool.fd, ask, strlen(ask), 0), strlen(ask));
	assert_int_equal(player_expect(&a, PACKET_MAPPED)->mapped.status, PACKET_OK);
	player_promote(&a, &now);
	assert_int_equal(now.record.view.primary, 1);
	in = tool_receive(&tool);
	assert_true(json_is_true(json_object_get(in, "ok")));
	json_decref(in);
}

static void a_promotion_that_cannot_be_says_why(void **state)
{
	static const char ask[] = "{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\","
				  "\"timeout_ms\":300}";
	static struct packet out = {.type = PACKET_MAP, .map = {.flags = PACKET_MAP_WAIT}};

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_recover(&a, &now);
	player_open(&b, &hosts, 1);
	snprintf(out.map.set, sizeof(out.map.set), HOSTS_SET);
	player_send(&b, &out);
	player_open(&tool, &hosts, 1);
	wait_until_primary_is(&tool, "a");
	/* Another primary is alive: the request waits for its end until the time limit passes (code
	 * 8). */
	assert_int_equal(refused_as(&tool, ask, "member a is primary"), 8);
	hosts_exclude(&hosts, 1);
	/* Only the live primary can update the stale copy, so a wait would not help. */
	assert_int_equal(refused_as(&tool, ask, "lacks acknowledged data"), 5);
}

static void a_promotion_runs_the_program_that_makes_a_process_wait(void **state)
{
	static const char ask[] = "{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\"}";

	player_open(&tool, &hosts, 1);
	wait_until_copies_are_known(&tool, 2);
	assert_int_equal(refused_as(&tool, ask, "on-promote /bin/false has failed"), 1);
}

static void wait_until_excluded(struct player *p, unsigned slot)
{
	for (bool is = false; !is; usleep(20000)) {
		json_t *in = tool_ask(p, "{\"op\":\"status\"}");
		json_t *members = json_object_get(first_set(in), "members");

		is = json_is_false(json_object_get(json_array_get(members, slot), "insync"));
		json_decref(in);
	}
}

/* ---- orders whose tool has exited ---- */

/*
 * Make the register's file unavailable or available: its path is a symbolic link, which is removed
 * and restored.
 */
static void set_register_away(bool is_away)
{
	const char *path = strchr(hosts.register_uri, ':') + 1;
	char away[320];

	snprintf(away, sizeof(away), "%s.away", path);
	assert_int_equal(is_away ? rename(path, away) : rename(away, path), 0);
}

/* The waiting process must not get any other packet. */
static void assert_not_mapped(const struct player *p)
{
	struct pollfd pfd = {.fd = p->fd, .events = POLLIN};

	assert_int_equal(poll(&pfd, 1, 0), 0);
}

/* The process of host 0 is a live primary, and has excluded host 1. A process on host 1 waits. */
static void begin_stale(void)
{
	static struct packet out = {.type = PACKET_MAP, .map = {.flags = PACKET_MAP_WAIT}};

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_recover(&a, &now);
	hosts_exclude(&hosts, 1);
	player_open(&b, &hosts, 1);
	snprintf(out.map.set, sizeof(out.map.set), HOSTS_SET);
	player_send(&b, &out);
	player_open(&tool, &hosts, 1);
	wait_until_primary_is(&tool, "a");
	wait_until_excluded(&tool, 1);
}

/* Restore the link. A refused order shows that the daemon has noticed this. The waiting process
 * must still not be promoted. */
static void assert_nothing_follows(void)
{
	static const char ask[] = "{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\"}";

	set_register_away(false);
	assert_int_equal(refused_as(&tool, ask, "lacks acknowledged data"), 5);
	assert_not_mapped(&b);
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.view.epoch.number, 1);
	assert_int_equal(now.record.view.primary, 0);
}

static void a_forced_promotion_that_failed_is_not_carried_out_later(void **state)
{
	static const char ask[] = "{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\","
				  "\"force\":true,\"timeout_ms\":500}";

	begin_stale();
	set_register_away(true);
	assert_int_equal(tool_code(&tool, ask), 8);
	assert_nothing_follows();
}

static void wait_until_order_is_shown(struct player *p, const char *what)
{
	for (bool is = false; !is; usleep(20000)) {
		json_t *in = tool_ask(p, "{\"op\":\"status\"}");
		json_t *list = json_object_get(first_set(in), "waiting");

		for (unsigned i = 0; i < json_array_size(list); i++)
			is |= strstr(text_of(json_array_get(list, i), "what"), what) != NULL;
		json_decref(in);
	}
}

static void a_promotion_that_was_interrupted_is_not_carried_out_later(void **state)
{
	static const char *const asks[] = {
		"{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\",\"force\":true}",
		"{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\"}"};
	static const char *const shown[] = {"order to promote member b by force",
					    "order to promote member b"};
	struct player killed;

	begin_stale();
	for (unsigned i = 0; i < ARRAY_LEN(asks); i++) {
		set_register_away(true);
		player_open(&killed, &hosts, 1);
		assert_int_equal(send(killed.fd, asks[i], strlen(asks[i]), 0), strlen(asks[i]));
		wait_until_order_is_shown(&tool, shown[i]);
		player_close(&killed);
		assert_nothing_follows();
	}
}

static void an_order_is_for_the_view_that_the_operator_saw(void **state)
{
	static const char ask[] = "{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\","
				  "\"force\":true}";
	char here[sizeof(hosts.register_uri)];
	struct mirror_epoch epoch;
	json_t *in;

	begin_stale();
	set_register_away(true);
	assert_int_equal(send(tool.fd, ask, strlen(ask), 0), strlen(ask));
	usleep(100000);
	/* While the register's file is away, begin a new epoch in it, with the same primary. */
	snprintf(here, sizeof(here), "%s", hosts.register_uri);
	snprintf(hosts.register_uri, sizeof(hosts.register_uri), "%.250s.away", here);
	epoch = hosts_promote(&hosts, 0);
	snprintf(hosts.register_uri, sizeof(hosts.register_uri), "%s", here);
	set_register_away(false);
	in = tool_receive(&tool);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(in, "error"), "code")),
			 6);
	json_decref(in);
	assert_not_mapped(&b);
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.view.epoch.number, epoch.number);
}

/*
 * The order permits the promotion, but the process sends its swap only after the order has ended.
 */
static void a_process_is_not_promoted_after_its_order(void **state)
{
	static const char ask[] = "{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\","
				  "\"force\":true}";
	static struct packet out = {.type = PACKET_SWAP};
	struct player killed;
	const struct packet *in;

	begin_stale();
	player_open(&killed, &hosts, 1);
	assert_int_equal(send(killed.fd, ask, strlen(ask), 0), strlen(ask));
	in = player_expect(&b, PACKET_MAPPED);
	assert_int_equal(in->mapped.status, PACKET_OK);
	assert_true(in->mapped.is_forced);
	out.swap.promotes = true;
	out.swap.revision = in->mapped.revision;
	out.swap.before = out.swap.after = in->mapped.record;
	assert_int_equal(view_force(&out.swap.after, 1, 0x5eed, NULL), 0);
	player_close(&killed);
	usleep(100000);
	in = player_ask(&b, &out, PACKET_SWAPPED);
	assert_int_equal(in->swapped.result, PACKET_SWAP_CHANGED);
	assert_int_equal(in->swapped.record.view.primary, 0);
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.view.epoch.number, 1);
}

/* The process of host 0 is primary, and the process of host 1 waits. The tool is connected to host
 * 1's daemon. */
static void begin_fenced(void)
{
	static struct packet out = {.type = PACKET_MAP, .map = {.flags = PACKET_MAP_WAIT}};

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_recover(&a, &now);
	player_open(&b, &hosts, 1);
	snprintf(out.map.set, sizeof(out.map.set), HOSTS_SET);
	player_send(&b, &out);
	player_open(&tool, &hosts, 1);
	wait_until_primary_is(&tool, "a");
}

static void end_fenced(void)
{
	assert_int_equal(player_expect(&b, PACKET_MAPPED)->mapped.status, PACKET_OK);
	player_promote(&b, &now);
	assert_int_equal(now.record.view.primary, 1);
}

/* Wait until the daemon reports this reason, and this health of the set. */
static void wait_until_reason_is(const char *why, const char *health)
{
	for (bool is = false; !is; usleep(20000)) {
		json_t *in = tool_ask(&tool, "{\"op\":\"status\"}");

		is = strstr(text_of(first_set(in), "reason"), why);
		if (is)
			assert_string_equal(text_of(first_set(in), "health"), health);
		json_decref(in);
	}
}

static void a_promotion_that_failed_makes_no_failover_automatic(void **state)
{
	static const char ask[] = "{\"op\":\"promote\",\"set\":\"orders\",\"member\":\"b\","
				  "\"timeout_ms\":300}";

	begin_fenced();
	assert_int_equal(tool_code(&tool, ask), 8);
	host_kill(&hosts, 0);
	wait_until_reason_is("the lease of member a is over", "down");
	assert_not_mapped(&b);
	assert_int_equal(send(tool.fd, ask, strlen(ask), 0), strlen(ask));
	end_fenced();
}

/* ---- the fence agent ---- */

static void the_end_of_a_process_needs_no_fence_agent(void **state)
{
	static struct packet out = {.type = PACKET_UNMAP};

	begin_fenced();
	assert_int_equal(player_ask(&a, &out, PACKET_DONE)->done.status, PACKET_OK);
	end_fenced();
}

/* The set is not "blocked" until the tool's daemon has noticed that the killed daemon does not
 * answer. */
static void wait_until_it_does_not_answer(void)
{
	bool is = false;

	while (!is) {
		json_t *in = tool_ask(&tool, "{\"op\":\"status\"}");
		const char *health = text_of(first_set(in), "health");

		is = !strcmp(health, "blocked");
		json_decref(in);
		if (!is)
			usleep(20000);
	}
}

static void a_primary_that_is_silent_is_not_called_healthy(void **state)
{
	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	player_open(&tool, &hosts, 1);
	wait_until_primary_is(&tool, "a");
	host_kill(&hosts, 0);
	wait_until_it_does_not_answer();
	wait_until_reason_is("the primary on member a is silent", "blocked");
	wait_until_reason_is("the lease of member a is over: no sign of life arrived for 3.",
			     "down");
}

static void a_proof_is_enough_where_no_lease_is(void **state)
{
	begin_fenced();
	host_kill(&hosts, 0);
	wait_until_reason_is("it ended with 1", "down");
	/* A working fence agent is configured while the daemon runs. */
	hosts.opts.more = "fence-agent = /bin/true\n";
	host_reload(&hosts, 1);
	end_fenced();
}

/* Mount a file system that never answers, because no process handles the kernel's requests. */
static int mount_silent(const char *folder)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mkdir(folder, 0700) || mount("silent", folder, "fuse", 0, options)) {
		printf("skipped: no file system of its own\n");
		skip();
	}
	return fd;
}

static void reload_with(unsigned i, char *more, size_t size, const char *format, const char *path)
{
	snprintf(more, size, format, path);
	hosts.opts.more = more;
	host_reload(&hosts, i);
}

/* The daemon continues to work, kills the hanging agent in time, and runs the next agent. */
static void an_agent_whose_file_system_hangs_stops_nothing(void **state)
{
	struct hosts_opts opts = {.count = 2, .automatic = true};
	char here[128], folder[64], more[300];
	int fd;

	need_root("a file system of its own");
	snprintf(folder, sizeof(folder), "silent.%d", (int)getpid());
	fd = mount_silent(folder);
	assert_non_null(getcwd(here, sizeof(here)));
	opts.more = more;
	snprintf(more, sizeof(more), "fence-agent = %s/%s/agent\nfence-timeout = 500\n", here,
		 folder);
	hosts_start(&hosts, &opts);
	begin_fenced();
	host_kill(&hosts, 0);
	wait_until_reason_is("it did not end within 500 ms", "down");
	reload_with(1, more, sizeof(more), "fence-agent = %s\n", "/nowhere/agent");
	wait_until_reason_is("it cannot be run: No such file", "down");
	reload_with(1, more, sizeof(more), "fence-agent = %s\n", "/bin/true");
	end_fenced();
	teardown(state);
	umount2(folder, MNT_DETACH);
	close(fd);
	rmdir(folder);
}

static void a_refused_discard_cuts_no_connection(void **state)
{
	static const char ask[] = "{\"op\":\"resolve\",\"set\":\"orders\",\"discard\":\"a\"}";
	struct mirror_epoch epoch;
	struct talk control;

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	/* Another member is primary, and has excluded this one; a process still maps this member's
	 * copy. */
	epoch = hosts_promote(&hosts, 1);
	hosts_exclude(&hosts, 0);
	assert_int_equal(talk_open(&control, &hosts, 0, 1, GREETING_CONTROL, epoch), GREETING_OK);
	assert_int_equal(talk_ask(&control, MESSAGE_PROMISE)->type, MESSAGE_PROMISED);
	player_open(&tool, &hosts, 0);
	wait_until_excluded(&tool, 0);
	assert_int_equal(refused_as(&tool, ask, "maps the copy"), 10);
	assert_int_equal(talk_ask(&control, MESSAGE_PING)->type, MESSAGE_PONG);
	talk_close(&control);
}

static void a_member_is_replaced_in_the_register(void **state)
{
	static const char ask[] = "{\"op\":\"member-replace\",\"set\":\"orders\",\"member\":"
				  "{\"name\":\"b\",\"host\":\"127.0.0.2\"}}";
	json_t *answer;
	uint64_t id;

	player_open(&tool, &hosts, 0);
	wait_until_copies_are_known(&tool, 2);
	id = hosts.first.config.members[1].id;
	answer = tool_ask(&tool, ask);
	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_null(json_object_get(answer, "text")); /* one copy is enough for this set */
	json_decref(answer);
	hosts_read(&hosts, &now);
	assert_int_not_equal(now.record.config.members[1].id, id);
	assert_string_equal(now.record.config.members[1].host, "127.0.0.2");
	assert_int_equal(now.record.view.insync, 1);
	assert_int_equal(tool_code(&tool, "{\"op\":\"member-remove\",\"set\":\"orders\","
					  "\"member\":\"b\"}"),
			 0);
	hosts_read(&hosts, &now);
	assert_int_equal(now.record.config.members[1].id, 0);
}

static void the_answer_warns_when_the_replaced_copy_is_needed(void **state)
{
	static const char ask[] =
		"{\"op\":\"member-replace\",\"set\":\"orders\",\"member\":{\"name\":\"b\"}}";
	json_t *answer;

	player_open(&tool, &hosts, 0);
	wait_until_copies_are_known(&tool, 2);
	answer = tool_ask(&tool, ask);
	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_non_null(strstr(text_of(answer, "text"), "1 copy is left, min_copies is 2"));
	json_decref(answer);
	answer = tool_ask(&tool, ask); /* flushes are already waiting */
	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_string_equal(text_of(answer, "text"), "");
	json_decref(answer);
}

/* The member has the slot of an earlier member, which was in-sync. */
static void a_member_that_does_not_exist_has_no_copy(void **state)
{
	static const char remove[] =
		"{\"op\":\"member-remove\",\"set\":\"orders\",\"member\":\"b\"}";
	static const char add[] =
		"{\"op\":\"member-add\",\"set\":\"orders\",\"member\":"
		"{\"name\":\"e\",\"host\":\"127.0.0.1\",\"port\":1,\"path\":\"/nowhere\"}}";
	json_t *in, *member;

	player_open(&tool, &hosts, 0);
	wait_until_copies_are_known(&tool, 2);
	assert_int_equal(tool_code(&tool, remove), 0);
	assert_int_equal(tool_code(&tool, add), 0);
	for (unsigned i = 0; i < 20; i++, usleep(20000)) {
		in = tool_ask(&tool, "{\"op\":\"status\"}");
		member = json_array_get(json_object_get(first_set(in), "members"), 1);
		assert_string_equal(text_of(member, "name"), "e");
		assert_string_equal(text_of(member, "copy"), "unknown");
		assert_true(json_is_false(json_object_get(member, "insync")));
		json_decref(in);
	}
}

static void events_begin_with_what_there_is(void **state)
{
	const char *kind = "";
	json_t *in, *event;
	unsigned existing = 0;

	player_open(&tool, &hosts, 1);
	wait_until_copies_are_known(&tool, 2);
	in = tool_ask(&tool, "{\"op\":\"events\",\"set\":\"orders\"}");
	while (strcmp(kind = text_of(json_object_get(in, "event"), "kind"), "dumped") != 0) {
		assert_string_equal(kind, "exists");
		existing++;
		json_decref(in);
		in = tool_receive(&tool);
	}
	json_decref(in);
	assert_int_equal(existing, 3); /* the set itself and its members */

	player_open(&a, &hosts, 0);
	assert_int_equal(player_map(&a, 0), PACKET_OK);
	player_promote(&a, &now);
	in = tool_receive(&tool);
	event = json_object_get(in, "event");
	assert_string_equal(text_of(event, "kind"), "change");
	assert_string_equal(text_of(event, "what"), "epoch");
	assert_non_null(strstr(text_of(event, "text"), "primary a"));
	json_decref(in);
}

static void others_may_look_but_not_change(void **state)
{
	struct hosts_opts opts = {.count = 2};
	pid_t pid;
	int status;

	need_root("a process of another user");
	hosts_start(&hosts, &opts);
	assert_int_equal(chmod(hosts.folder, 0755) | chmod(hosts.hosts[0].folder, 0755), 0);
	player_open(&tool, &hosts, 0);
	wait_until_copies_are_known(&tool, 2);
	player_close(&tool);
	pid = fork();
	if (!pid) {
		if (setresuid(65534, 65534, 65534))
			_exit(1);
		player_open(&tool, &hosts, 0);
		if (tool_code(&tool, "{\"op\":\"status\"}") ||
		    tool_code(&tool, "{\"op\":\"fence\",\"set\":\"orders\",\"member\":\"a\"}") != 1)
			_exit(2);
		/* This user is not allowed to map the set, either, with any flags. */
		_exit(player_map(&tool, PACKET_MAP_FORCE) == PACKET_PERMISSION &&
				      player_map(&tool, PACKET_MAP_READONLY) == PACKET_PERMISSION &&
				      player_map(&tool, PACKET_MAP_RESUME) == PACKET_PERMISSION
			      ? 0
			      : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	hosts_stop(&hosts);
}

#define TEST(name, ...) HOSTS_TEST(name, .count = 2, __VA_ARGS__)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOSTS_TEST(every_host_reports_the_status_of_all, .count = 3, .has_secret = true),
		TEST(a_report_is_shown_of_the_primary_alone),
		TEST(what_cannot_be_is_refused_with_its_code),
		TEST(a_demotion_is_asked_of_the_primary),
		TEST(an_order_names_its_member),
		TEST(a_format_that_a_member_lacks_is_refused),
		TEST(a_set_grows_when_each_copy_has_room),
		TEST(an_operator_promotes_a_waiting_process, .lease_ms = 600000),
		TEST(a_promotion_that_cannot_be_says_why, .lease_ms = 600000),
		TEST(a_promotion_runs_the_program_that_makes_a_process_wait,
		     .more = "on-promote = /bin/false\n"),
		TEST(a_forced_promotion_that_failed_is_not_carried_out_later, .lease_ms = 600000),
		TEST(a_promotion_that_was_interrupted_is_not_carried_out_later, .lease_ms = 600000),
		TEST(an_order_is_for_the_view_that_the_operator_saw, .lease_ms = 600000),
		TEST(a_process_is_not_promoted_after_its_order, .lease_ms = 600000),
		TEST(a_promotion_that_failed_makes_no_failover_automatic, .lease_ms = 1500),
		TEST(the_end_of_a_process_needs_no_fence_agent, .lease_ms = 600000,
		     .automatic = true, .more = "fence-agent = /bin/false\n"),
		TEST(a_primary_that_is_silent_is_not_called_healthy, .lease_ms = 3000),
		TEST(a_proof_is_enough_where_no_lease_is, .automatic = true,
		     .lonely = MIRROR_LONELY_MANUAL, .more = "fence-agent = /bin/false\n"),
		cmocka_unit_test(an_agent_whose_file_system_hangs_stops_nothing),
		TEST(a_refused_discard_cuts_no_connection),
		TEST(a_member_is_replaced_in_the_register),
		TEST(the_answer_warns_when_the_replaced_copy_is_needed, .min_copies = 2),
		TEST(a_member_that_does_not_exist_has_no_copy),
		TEST(events_begin_with_what_there_is),
		cmocka_unit_test(others_may_look_but_not_change),
	};

	return cases_run(tests, CASES_OF_HOSTS);
}
