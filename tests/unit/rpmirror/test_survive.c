/* SPDX-License-Identifier: BSD-3-Clause */
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

	says((struct survive_facts){2, 1, none, 3, 3, false}, "survives the loss of any one host");
	says((struct survive_facts){3, 1, none, 5, 5, false}, "survives the loss of any 2 hosts");
	says((struct survive_facts){3, 1, none, 3, 3, false}, "survives the loss of any one host");
	says((struct survive_facts){3, 2, none, 5, 5, false}, "survives the loss of any one host");
	says((struct survive_facts){8, 1, none, 9, 9, false}, "any 4 hosts");
	says((struct survive_facts){2, 2, none, 3, 3, false}, "flushes block until it is back");
	says((struct survive_facts){2, 1, none, 1, 1, false}, "not of a host of the register");
	says((struct survive_facts){2, 1, none, 3, 2, false}, "not of a host of the register");
	says((struct survive_facts){2, 1, none, 3, 1, false}, "does not answer");
	says((struct survive_facts){2, 1, none, 0, 0, false}, "survives the loss of any one host");
	says((struct survive_facts){2, 1, none, 0, 0, true}, "does not answer");
	says((struct survive_facts){1, 1, none, 3, 3, false}, "only in-sync copy");
	says((struct survive_facts){2, 1, MIRROR_LONELY_BLOCK, 0, 0, false},
	     "until an operator acts");
	says((struct survive_facts){2, 1, MIRROR_LONELY_MANUAL, 0, 0, false}, "goes on alone");
	says((struct survive_facts){1, 1, MIRROR_LONELY_MANUAL, 0, 0, false}, "only in-sync copy");
}

/* Three members, a primary; c is not in-sync. */
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
	got = survive_loss(set, lost, text, sizeof(text));
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

static void a_status_without_parts_is_survived(void **state)
{
	json_t *set = json_object();
	struct survive_facts facts;
	char text[512];

	survive_facts_of(set, &facts);
	survive_text(&facts, text, sizeof(text));
	assert_int_equal(survive_loss(set, 0xff, text, sizeof(text)), SURVIVE_LOSES);
	assert_int_equal(survive_slot(set, "a"), MIRROR_NOBODY);
	json_decref(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sentence_is_as_weak_as_the_weakest_part),
		cmocka_unit_test(a_loss_has_the_outcome_that_the_rules_give),
		cmocka_unit_test(a_status_without_parts_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
