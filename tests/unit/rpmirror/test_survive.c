/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "lib/unit.h"
#include "survive.h"

static void says(struct survive_facts facts, const char *what)
{
	char text[256];

	survive_text(&facts, text, sizeof(text));
	if (!strstr(text, what))
		fail_msg("'%s' does not say '%s'", text, what);
}

static void the_sentence_is_as_weak_as_the_weakest_part(void **state)
{
	const enum mirror_lonely none = MIRROR_LONELY_NONE;

	says((struct survive_facts){2, 1, none, 3, 3, false, 0},
	     "survives the loss of any one host");
	says((struct survive_facts){3, 1, none, 5, 5, false, 0},
	     "survives the loss of any 2 hosts");
	says((struct survive_facts){3, 1, none, 3, 3, false, 0},
	     "survives the loss of any one host");
	says((struct survive_facts){3, 2, none, 5, 5, false, 0},
	     "survives the loss of any one host");
	says((struct survive_facts){8, 1, none, 9, 9, false, 0}, "any 4 hosts");
	says((struct survive_facts){2, 2, none, 3, 3, false, 0}, "flushes block until it is back");
	says((struct survive_facts){2, 1, none, 1, 1, false, 0}, "not of a host of the register");
	says((struct survive_facts){2, 1, none, 3, 2, false, 0}, "not of a host of the register");
	says((struct survive_facts){2, 1, none, 3, 1, false, 0}, "cannot be asked");
	says((struct survive_facts){2, 1, none, 0, 0, false, 0},
	     "survives the loss of any one host");
	says((struct survive_facts){2, 1, none, 0, 0, true, 0}, "cannot be asked");
	says((struct survive_facts){1, 1, none, 3, 3, false, 0}, "only in-sync copy");
	says((struct survive_facts){2, 1, MIRROR_LONELY_BLOCK, 0, 0, false, 0},
	     "until an operator acts");
	says((struct survive_facts){2, 1, MIRROR_LONELY_MANUAL, 0, 0, false, 0}, "goes on alone");
	says((struct survive_facts){1, 1, MIRROR_LONELY_MANUAL, 0, 0, false, 0},
	     "only in-sync copy");
	says((struct survive_facts){3, 1, none, 3, 3, false, 1},
	     "without it: survives the loss of any one");
	says((struct survive_facts){3, 1, none, 3, 3, false, 2}, "without them: does not survive");
	says((struct survive_facts){2, 1, none, 3, 3, false, 2},
	     "none of its in-sync copies is reached");
}

/* Lose members of a set of three that has a primary; c is not in-sync. */
static void loss(const char *lonely, int min_copies, int healthy, const char *primary,
		 mirror_mask lost, enum survive_outcome want)
{
	json_t *set = json_pack(
		"{s:s?, s:s, s:i, s:i, s:{s:s, s:i, s:i}, s:[{s:s,s:i,s:b},{s:s,s:i,s:b},{s:s,s:i,s:b}]}",
		"primary", primary, "lonely", lonely, "min_copies", min_copies, "lease_ms", 5000,
		"register", "kind", strcmp(lonely, "none") ? "file" : "etcd", "members", 3,
		"healthy", healthy, "members", "name", "a", "slot", 0, "insync", 1, "name", "b",
		"slot", 1, "insync", 1, "name", "c", "slot", 2, "insync", 0);
	enum survive_outcome got;
	char text[512];

	assert_non_null(set);
	got = survive_loss(set, &(struct survive_lost){.members = lost}, text, sizeof(text));
	if (got != want)
		fail_msg("%s instead of %s: %s", survive_outcome_str(got),
			 survive_outcome_str(want), text);
	assert_true(strlen(text) > 10);
	json_decref(set);
}

static void a_loss_has_the_outcome_that_the_rules_give(void **state)
{
	loss("none", 1, 3, "a", 1, SURVIVE_FAILS_OVER);
	loss("none", 2, 3, "a", 1, SURVIVE_BLOCKS);
	loss("none", 1, 1, "a", 1, SURVIVE_BLOCKS);
	loss("none", 1, 3, "a", 2, SURVIVE_GOES_ON);
	loss("none", 2, 3, "a", 2, SURVIVE_BLOCKS);
	loss("none", 1, 1, "a", 2, SURVIVE_BLOCKS);
	loss("none", 1, 3, "a", 3, SURVIVE_LOSES);
	loss("none", 1, 3, "a", 4, SURVIVE_NO_CHANGE);
	loss("none", 1, 1, "a", 4, SURVIVE_NO_CHANGE);
	loss("none", 1, 3, NULL, 1, SURVIVE_GOES_ON);
	loss("block", 1, 0, "a", 1, SURVIVE_STOPS);
	loss("block", 1, 0, "a", 2, SURVIVE_BLOCKS);
	loss("manual", 1, 0, "a", 1, SURVIVE_STOPS);
	loss("manual", 1, 0, "a", 2, SURVIVE_GOES_ON);
	loss("manual", 1, 0, "b", 3, SURVIVE_LOSES);
}

/*
 * Lose hosts. a and b are in-sync, and each host also has a member of the register; the register's
 * third member is on another host.
 */
static void host_loss(const char *names, int min_copies, enum survive_outcome want,
		      const char *says_what)
{
	json_t *set = json_pack(
		"{s:s, s:s, s:i, s:i, s:{s:s, s:i, s:i, s:[s, s, s]}, s:[{s:s,s:s,s:i,s:b},{s:s,s:s,s:i,s:b}]}",
		"primary", "a", "lonely", "none", "min_copies", min_copies, "lease_ms", 5000,
		"register", "kind", "etcd", "members", 3, "healthy", 3, "endpoints",
		"10.0.0.1:2379", "[fd00::2]:2379", "10.0.0.3:2379", "members", "name", "a", "host",
		"10.0.0.1", "slot", 0, "insync", 1, "name", "b", "host", "fd00::2", "slot", 1,
		"insync", 1);
	char list[100], text[512], *save;
	struct survive_lost lost = {0};
	enum survive_outcome got;

	assert_non_null(set);
	snprintf(list, sizeof(list), "%s", names);
	for (char *name = strtok_r(list, "+", &save); name; name = strtok_r(NULL, "+", &save))
		assert_true(survive_add_lost(set, name, &lost));
	got = survive_loss(set, &lost, text, sizeof(text));
	if (got != want || !strstr(text, says_what))
		fail_msg("%s: %s instead of %s: %s", names, survive_outcome_str(got),
			 survive_outcome_str(want), text);
	assert_false(survive_add_lost(set, "10.0.0.4", &lost));
	assert_false(survive_add_lost(set, "10.0.0", &lost));
	json_decref(set);
}

static void a_host_is_lost_with_all_that_it_has(void **state)
{
	const char *two_left = "the register goes on with 2 of 3 members";

	host_loss("10.0.0.3", 1, SURVIVE_NO_CHANGE, two_left);
	host_loss("10.0.0.3:2379", 1, SURVIVE_NO_CHANGE, two_left);
	host_loss("a", 1, SURVIVE_FAILS_OVER, two_left);
	host_loss("10.0.0.1", 1, SURVIVE_FAILS_OVER, two_left);
	host_loss("10.0.0.1:2379", 1, SURVIVE_NO_CHANGE, two_left);
	host_loss("b", 1, SURVIVE_GOES_ON, two_left);
	host_loss("fd00::2", 2, SURVIVE_BLOCKS, "min_copies is 2");
	host_loss("b+10.0.0.3", 1, SURVIVE_BLOCKS, "1 of its 3 members are no majority");
	host_loss("a+10.0.0.1+10.0.0.3", 1, SURVIVE_BLOCKS, "no majority");
	host_loss("10.0.0.1:2379+10.0.0.3", 1, SURVIVE_BLOCKS, "its lease of 5.0 s is over");
	host_loss("a+b", 1, SURVIVE_LOSES, "no in-sync copy");
}

static void a_status_without_parts_is_survived(void **state)
{
	json_t *set = json_object();
	struct survive_lost lost = {.members = 0xff};
	struct survive_facts facts;
	char text[512];

	survive_facts_of(set, &facts);
	survive_text(&facts, text, sizeof(text));
	assert_int_equal(survive_loss(set, &lost, text, sizeof(text)), SURVIVE_LOSES);
	assert_false(survive_add_lost(set, "a", &lost));
	assert_int_equal(lost.members, 0xff);
	json_decref(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sentence_is_as_weak_as_the_weakest_part),
		cmocka_unit_test(a_loss_has_the_outcome_that_the_rules_give),
		cmocka_unit_test(a_host_is_lost_with_all_that_it_has),
		cmocka_unit_test(a_status_without_parts_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
