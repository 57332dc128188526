/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts about a copy's metadata, for people and for scripts. */
#include "lib/mirror_copy.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

#include "mirror/core/member.h"
#include "mirror/core/meta_dump.h"

static struct two_layers store;
static struct meta meta;
static char *text;
static size_t len;
static char said[2048];

static int setup(void **state)
{
	copy_create(&store, 1);
	copy_load(&meta, &store);
	text = NULL;
	return 0;
}

static int teardown(void **state)
{
	meta_fini(&meta);
	two_layers_fini(&store);
	free(text);
	return 0;
}

static void dump(enum meta_form form)
{
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	meta_dump(&meta, form, out);
	assert_int_equal(fclose(out), 0);
}

static void expect(const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

static void say(void *arg, enum meta_finding finding, const char *line)
{
	size_t at = strlen(said);

	snprintf(said + at, sizeof(said) - at, "%s %s\n", finding == META_DEFECT ? "!" : "-", line);
}

static unsigned check(uint64_t data_size)
{
	said[0] = '\0';
	return meta_check(&meta, data_size, say, NULL);
}

static void change_something(void)
{
	struct meta_super super = meta.super;
	struct meta_history history = {.count = 1, .ended = {{.epoch = {6, 7}, .seq = 8}}};
	struct intent_head head = {3, copy_epoch(5), 2, 1};
	struct mirror_range range = {0, 8};
	uint32_t extents[] = {4, 9};

	super.flags = META_SYNCING | META_UNCERTAIN;
	super.source_id = 0xbeef;
	super.holder.pid = 4711;
	strcpy(super.set, "a\"b\\c\x01");
	assert_int_equal(meta_set_super(&meta, &super), 0);
	assert_int_equal(meta_set_history(&meta, &history), 0);
	assert_int_equal(meta_hot_mark(&meta, extents, 2), 0);
	assert_int_equal(meta_bitmap_start(&meta, 2, copy_epoch(4), copy_epoch(5), NULL), 0);
	meta_bitmap_set(&meta, 2, (struct mirror_range){0, 8192});
	intent_encode(meta_ring(&meta) + intent_slot_offset(3), &head, &range);
}

static void a_text_for_people(void **state)
{
	change_something();
	dump(META_FORM_TEXT);
	expect("set: a\"b\\c?\n");
	expect("uuid: 101112131415161718191a1b1c1d1e1f\n");
	expect("copy: 00000000000000a1\n");
	expect("flags\n  - syncing\n  - uncertain\n");
	expect("source: 000000000000beef\n");
	expect("holder\n  pid: 4711\n");
	expect("hot_extents\n  - 4\n  - 9\n");
	expect("unacknowledged: 1\n");
	expect("    name: c\n");
	expect("      blocks: 2\n");
	expect("damage: none\n");
	expect("history\n  -\n    number: 6\n    nonce: 0000000000000007\n    seq: 8\n");
}

static void json_for_scripts(void **state)
{
	change_something();
	dump(META_FORM_JSON);
	expect("{\"format\":1,\"set\":\"a\\\"b\\\\c?\",");
	expect("\"hot_extents\":[4,9],");
	expect("\"history\":[{\"number\":6,\"nonce\":\"0000000000000007\",\"seq\":8}]");
	expect("\"holder\":{\"pid\":4711,");
	expect("\"bitmap\":{\"blocks\":2,\"base\":{\"number\":4,");
	expect("\"intents\":[{\"seq\":3,\"epoch\":5,\"acked\":2,\"ranges\":1}]}\n");
	/* Each opening bracket has a closing one. */
	for (const char *pair = "{}[]"; *pair; pair += 2) {
		int depth = 0;

		for (const char *c = text; *c; c++)
			depth += (*c == pair[0]) - (*c == pair[1]);
		assert_int_equal(depth, 0);
	}
}

/* The text names the members that were in-sync in the last view that the copy has seen. */
static void what_was_seen_last_names_the_members_of_s(void **state)
{
	struct meta_promise promise = meta.promise;

	promise.seen.view.insync = MIRROR_BIT(0) | MIRROR_BIT(2);
	assert_int_equal(meta_set_promise(&meta, &promise), 0);
	dump(META_FORM_JSON);
	expect("\"insync\":[0,2]");
}

static void a_good_copy_has_no_findings(void **state)
{
	assert_int_equal(check(COPY_SIZE), 0);
	assert_string_equal(said, "");
}

static void states_that_ask_for_something_are_notes(void **state)
{
	change_something();
	assert_int_equal(check(0), 0);
	assert_non_null(strstr(said, "- a resync from copy 000000000000beef has not ended"));
	assert_non_null(strstr(said, "- process 4711 holds the copy"));
	assert_non_null(strstr(said, "- member 'c' lacks up to 8192 bytes since epoch 4"));
	assert_non_null(strstr(said, "- records of the ranges that differ are lost"));
}

static void damage_and_contradictions_are_defects(void **state)
{
	uint32_t extent = 1;

	assert_int_equal(check(COPY_SIZE - 1), 1);
	assert_non_null(strstr(said, "truncated"));
	assert_int_equal(meta_hot_mark(&meta, &extent, 1), 0);
	assert_int_equal(check(0), 1); /* the copy is still clean */
	meta.super.epoch = copy_epoch(1);
	meta.super.retired_below = 2;
	meta.super.member_id = 5;
	assert_int_equal(check(0), 4);
	store.cache[META_HOT_AT] ^= 1;
	assert_int_equal(meta_reload(&meta), 0);
	assert_int_equal(check(0), 4); /* one defect more (damage), one less (no hot extent) */
	assert_non_null(strstr(said, "! damaged: hot extents"));
}

static void bits_behind_the_end_are_a_defect(void **state)
{
	struct meta_super super;
	struct meta_members members;
	struct meta_store s;

	copy_super(&super);
	copy_members(&members);
	super.size = 4096 * 70;
	memset(store.cache, 0, store.len);
	s = two_layers_store(&store);
	assert_int_equal(meta_create(&s, &super, &members), 0);
	meta_fini(&meta);
	copy_load(&meta, &store);
	assert_int_equal(meta_bitmap_start(&meta, 0, copy_epoch(1), copy_epoch(1), NULL), 0);
	assert_int_equal(check(0), 0);
	store.cache[META_BITMAPS_AT + 15] = 0x80;
	assert_int_equal(meta_reload(&meta), 0);
	assert_int_equal(check(0), 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_text_for_people),
		TEST(json_for_scripts),
		TEST(what_was_seen_last_names_the_members_of_s),
		TEST(a_good_copy_has_no_findings),
		TEST(states_that_ask_for_something_are_notes),
		TEST(damage_and_contradictions_are_defects),
		TEST(bits_behind_the_end_are_a_defect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
