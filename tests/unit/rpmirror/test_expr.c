/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "expr.h"
#include "lib/unit.h"

static const char status[] =
	"{\"health\":\"degraded\",\"phase\":\"serving\",\"primary\":\"a\",\"members\":["
	"{\"name\":\"a\",\"copy\":\"in-sync\",\"link\":\"local\",\"role\":\"primary\",\"insync\":true},"
	"{\"name\":\"b.2\",\"copy\":\"syncing\",\"link\":\"connected\",\"flow\":\"catching-up\"}]}";

static bool holds(const char *text)
{
	json_t *set = json_loads(status, 0, NULL);
	struct expr e;
	char why[256];
	bool is;

	if (!expr_parse(&e, text, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	is = expr_holds(&e, set, why, sizeof(why));
	json_decref(set);
	return is;
}

static void terms_are_compared_with_the_status(void **state)
{
	assert_true(holds("health=degraded"));
	assert_false(holds("health=healthy"));
	assert_true(holds("health=healthy|degraded"));
	assert_true(holds("health=degraded,phase=serving,primary=a"));
	assert_false(holds("health=degraded,phase=none"));
	assert_false(holds("primary=none"));
	assert_true(holds("copy.a=in-sync,insync.a=yes,role.a=primary,link.a=local"));
	assert_true(holds("copy.b.2=syncing,flow.b.2=joining|catching-up,insync.b.2=no"));
	assert_false(holds("copy.c=in-sync"));
	assert_true(holds("flow.a=none"));
}

static void what_never_holds_is_refused(void **state)
{
	static const char *const texts[] = {"",
					    "health",
					    "health=",
					    "health=healty",
					    "copy=in-sync",
					    "copy.=stale",
					    "health.a=down",
					    "color=red",
					    "=x",
					    ",",
					    "copy.a=stale|",
					    "phase=?",
					    "role.a=boss",
					    "insync.a=true",
					    "health=healthy||down"};
	char why[256], many[1024] = "";
	struct expr e;

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		if (expr_parse(&e, texts[i], why, sizeof(why)))
			fail_msg("accepted: '%s'", texts[i]);
	for (int i = 0; i < EXPR_TERMS + 1; i++)
		strcat(many, "primary=a,");
	assert_false(expr_parse(&e, many, why, sizeof(why)));
	memset(many, 'x', sizeof(many) - 1);
	assert_false(expr_parse(&e, many, why, sizeof(why)));
}

static void any_text_is_survived(void **state)
{
	static const char parts[] = "health=copy.a|b,down?in-sync.";
	json_t *set = json_loads(status, 0, NULL);
	uint64_t seed = 0xabc;
	char text[64], why[32];
	unsigned accepted = 0;
	struct expr e;

	for (int round = 0; round < 50000; round++) {
		size_t len = test_random(&seed) % (sizeof(text) - 1);

		for (size_t i = 0; i < len; i++)
			text[i] = parts[test_random(&seed) % (sizeof(parts) - 1)];
		memcpy(text, "primary=", len < 8 ? len : 8);
		text[len] = '\0';
		if (expr_parse(&e, text, why, sizeof(why))) {
			expr_holds(&e, set, why, sizeof(why));
			accepted++;
		}
	}
	assert_true(accepted > 0);
	json_decref(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terms_are_compared_with_the_status),
		cmocka_unit_test(what_never_holds_is_refused),
		cmocka_unit_test(any_text_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
