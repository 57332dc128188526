/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "lib/unit.h"
#include "place.h"

static void places_are_parsed(void **state)
{
	struct mirror_member m = {.id = 7};
	const char *why;

	assert_true(place_parse("a=10.0.0.1:/pm/x:y=z", &m, &why));
	assert_string_equal(m.name, "a");
	assert_string_equal(m.host, "10.0.0.1");
	assert_int_equal(m.port, PLACE_PORT);
	assert_string_equal(m.path, "/pm/x:y=z");
	assert_int_equal(m.id, 7);
	assert_true(place_parse("node-1=db.example.org:99:/f", &m, &why));
	assert_string_equal(m.host, "db.example.org");
	assert_int_equal(m.port, 99);
	assert_true(place_parse("a=[fe80::1%eth0]:/f", &m, &why));
	assert_string_equal(m.host, "fe80::1%eth0");
	assert_int_equal(m.port, PLACE_PORT);
	assert_true(place_parse("a=[::1]:1:/f", &m, &why));
	assert_int_equal(m.port, 1);
}

static void what_is_no_place_is_refused(void **state)
{
	static const char *const texts[] = {
		"",         "a",           "a=h",      "a=h:",         "a=h:path",  "=h:/p",
		"a b=h:/p", "a=:/p",       "a=h:0:/p", "a=h:65536:/p", "a=h:x:/p",  "a=[::1:/p",
		"a=[]:/p",  "a=[::1]x:/p", "-a=h:/p",  "a/b=h:/p",     "a=h:1:2:/p"};
	char longest[2048];
	struct mirror_member m;
	const char *why;

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		if (place_parse(texts[i], &m, &why))
			fail_msg("accepted: '%s'", texts[i]);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	memcpy(longest, "a=h:/", 5);
	assert_false(place_parse(longest, &m, &why));
	memset(longest, 'x', 300);
	memcpy(longest, "a=", 2);
	memcpy(longest + 300, ":/p", 4);
	assert_false(place_parse(longest, &m, &why));
}

static void own_addresses_are_known(void **state)
{
	assert_true(place_is_here("127.0.0.1"));
	assert_true(place_is_here("127.9.8.7"));
	assert_false(place_is_here("192.0.2.1"));
	assert_false(place_is_here(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_are_parsed),
		cmocka_unit_test(what_is_no_place_is_refused),
		cmocka_unit_test(own_addresses_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
