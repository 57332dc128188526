/* SPDX-License-Identifier: BSD-3-Clause */
/* What the daemon concludes from the alive key if the epoch changes meanwhile. */
#include "lib/unit.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mirror/core/view.h"
#include "mirrord/impl.h"

#define WAIT_MS  20000
#define LEASE_MS 60000 /* the lease does not end in this test */

static char folder[] = "/tmp/mirrord_reg.XXXXXX";
static char uri[64];
static struct daemon d;
static struct conf_set conf;
static struct set s;
static struct mirror_register *reg;
static struct register_entry now;

static struct mirror_record first_record(void)
{
	struct mirror_config config = {.format = 1,
				       .size = 1 << 20,
				       .min_copies = 1,
				       .lease_ms = LEASE_MS,
				       .replica_timeout_ms = 1000,
				       .slow_ms = 1000,
				       .holdoff_ms = 100,
				       .blocked_ms = 10000};
	struct mirror_record record;
	const char *why = "";

	config.uuid.bytes[0] = 1;
	snprintf(config.set, sizeof(config.set), "orders");
	for (unsigned i = 0; i < 2; i++) {
		config.members[i].id = i + 1;
		config.members[i].name[0] = (char)('a' + (char)i);
		snprintf(config.members[i].host, sizeof(config.members[i].host), "127.0.0.1");
		config.members[i].port = (uint16_t)(i + 1);
		snprintf(config.members[i].path, sizeof(config.members[i].path), "/pm/%u", i);
	}
	if (view_create(&record, &config, 3, 1, &why))
		fail_msg("%s", why);
	return record;
}

/* Let a process of another host become the primary. Its alive key exists. */
static void promote_other(void)
{
	struct mirror_record next = now.record;
	struct register_alive alive = {0};
	struct error err = {0};
	const char *why = "";

	assert_int_equal(register_alive_get(reg, &alive, &err), 0);
	if (view_promote(&next, 1, now.record.nonce + 1, &why))
		fail_msg("%s", why);
	assert_int_equal(register_swap(reg, &now, &next, &alive, &now, &err), REGISTER_DONE);
}

static void wait_for_an_answer(void)
{
	struct pollfd answer = {.fd = agent_answers_get_fd(d.answers), .events = POLLIN};

	assert_int_equal(poll(&answer, 1, WAIT_MS), 1);
}

/* Read the present alive key, and let the daemon judge it. */
static void look(void)
{
	if (!s.is_reading_alive)
		reg_ask_alive(&s);
	while (s.is_reading_alive) {
		wait_for_an_answer();
		agent_answers_take(d.answers);
	}
}

/* The earlier epoch has ended, and its key is cleared. */
static void begin(void)
{
	struct error err = {0};

	if (now.record.view.epoch.number)
		assert_int_equal(register_alive_clear(reg, now.record.view.epoch, &err),
				 REGISTER_DONE);
	reg_on_entry(&s, &now, clock_boot_ns());
	look();
	assert_true(s.may_promote);
}

static void a_cleared_key_permits_nothing_in_the_next_epoch(void **state)
{
	begin();
	promote_other();
	reg_on_entry(&s, &now, clock_boot_ns());
	assert_false(s.may_promote);
	assert_int_equal(s.alive_ms, 0); /* the key is read immediately */
	look();
	assert_false(s.may_promote);
	assert_true(mirror_epoch_is_equal(s.seen.epoch, now.record.view.epoch));
}

static void a_read_that_was_sent_before_the_epoch_was_known_is_repeated(void **state)
{
	uint32_t first;

	begin();
	reg_ask_alive(&s); /* the register has no key */
	first = s.alive_asked;
	wait_for_an_answer();
	promote_other();
	reg_on_entry(&s, &now, clock_boot_ns());
	agent_answers_take(d.answers);
	assert_false(s.may_promote);
	assert_int_equal(s.alive_asked, first + 1);
	look();
	assert_false(s.may_promote);
	assert_true(s.seen.is_set);
}

/* Reading the same record again changes nothing. */
static void a_cleared_key_counts_as_long_as_the_epoch_is_the_same(void **state)
{
	begin();
	reg_on_entry(&s, &now, clock_boot_ns());
	assert_true(s.may_promote);
}

static int start(void **state)
{
	struct error err = {0};
	struct mirror_record record = first_record();

	assert_non_null(mkdtemp(folder));
	snprintf(uri, sizeof(uri), "file:%s/register", folder);
	assert_int_equal(register_open(uri, "orders", 5000, &reg, &err), 0);
	assert_int_equal(register_create(reg, &record, &now, &err), REGISTER_DONE);
	snprintf(conf.name, sizeof(conf.name), "orders");
	d.answers = agent_answers_new();
	assert_non_null(d.answers);
	s.daemon = &d;
	s.conf = &conf;
	assert_int_equal(agent_new(uri, "orders", 5000, d.answers, &s.alive, &err), 0);
	return 0;
}

static int stop(void **state)
{
	char path[80];

	agent_delete(&s.alive);
	agent_answers_delete(d.answers);
	register_close(reg);
	snprintf(path, sizeof(path), "%s/register", folder);
	unlink(path);
	snprintf(path, sizeof(path), "%s/register.lock", folder);
	unlink(path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cleared_key_permits_nothing_in_the_next_epoch),
		cmocka_unit_test(a_read_that_was_sent_before_the_epoch_was_known_is_repeated),
		cmocka_unit_test(a_cleared_key_counts_as_long_as_the_epoch_is_the_same),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
