/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/unit.h"
#include "mirror/register/alive.h"
#include "mirror/register/value.h"
#include "records.h"

/* Fill a record in which each part has a different value. */
static void full_record(struct mirror_record *r)
{
	record_init(r, "orders.db-1");
	r->config.address = 0x7f0000000000;
	r->config.size = MIRROR_SIZE_MAX;
	r->config.lonely = MIRROR_LONELY_MANUAL;
	r->config.blocked_ms = UINT32_MAX;
	r->config.local_error_continues = true;
	r->config.members[7] = (struct mirror_member){.id = UINT64_MAX, .port = UINT16_MAX};
	strcpy(r->config.members[7].name, "h");
	strcpy(r->config.members[7].host, "fe80::1%eth0");
	strcpy(r->config.members[7].path, "/a \"quoted\\path\"/\xc3\xa4");
	r->view = (struct mirror_view){.epoch = {INT64_MAX, UINT64_MAX},
				       .seq = 12,
				       .phase = MIRROR_PHASE_SERVING,
				       .primary = 7,
				       .clean = true,
				       .forced = true,
				       .insync = 0x82};
	r->history_count = MIRROR_HISTORY;
	for (unsigned i = 0; i < MIRROR_HISTORY; i++)
		r->history[i] = (struct mirror_ended){
			.epoch = {100 - i, 7 * i}, .seq = 3 * i, .insync = (mirror_mask)i};
}

static void same_after_a_round(const struct mirror_record *r)
{
	char text[VALUE_MAX], again[VALUE_MAX];
	struct mirror_record back;
	struct error err;

	assert_int_equal(value_encode(r, text, &err), 0);
	memset(&back, 0xaa, sizeof(back));
	if (value_decode(text, strlen(text), &back, &err))
		fail_msg("%s", err.text);
	assert_memory_equal(&back.view.epoch, &r->view.epoch, sizeof(r->view.epoch));
	assert_int_equal(back.nonce, r->nonce);
	assert_int_equal(value_encode(&back, again, &err), 0);
	assert_string_equal(text, again);
}

static void a_record_survives_its_text(void **state)
{
	struct mirror_record r;

	record_init(&r, "s");
	same_after_a_round(&r);
	full_record(&r);
	same_after_a_round(&r);
}

static void every_field_is_in_the_text(void **state)
{
	char text[VALUE_MAX];
	struct mirror_record r, back;
	struct error err;

	full_record(&r);
	assert_int_equal(value_encode(&r, text, &err), 0);
	assert_int_equal(value_decode(text, strlen(text), &back, &err), 0);
	assert_memory_equal(&back.config.uuid, &r.config.uuid, sizeof(r.config.uuid));
	assert_string_equal(back.config.set, r.config.set);
	assert_int_equal(back.config.size, r.config.size);
	assert_int_equal(back.config.address, r.config.address);
	assert_int_equal(back.config.min_copies, r.config.min_copies);
	assert_int_equal(back.config.lonely, r.config.lonely);
	assert_int_equal(back.config.lease_ms, r.config.lease_ms);
	assert_int_equal(back.config.replica_timeout_ms, r.config.replica_timeout_ms);
	assert_int_equal(back.config.slow_ms, r.config.slow_ms);
	assert_int_equal(back.config.holdoff_ms, r.config.holdoff_ms);
	assert_int_equal(back.config.blocked_ms, r.config.blocked_ms);
	assert_true(back.config.local_error_continues);
	assert_int_equal(mirror_config_members(&back.config), 0x83);
	assert_int_equal(back.config.members[7].id, UINT64_MAX);
	assert_int_equal(back.config.members[7].port, UINT16_MAX);
	assert_string_equal(back.config.members[7].host, r.config.members[7].host);
	assert_string_equal(back.config.members[7].path, r.config.members[7].path);
	assert_int_equal(back.view.phase, MIRROR_PHASE_SERVING);
	assert_int_equal(back.view.primary, 7);
	assert_int_equal(back.view.insync, 0x82);
	assert_true(back.view.clean && back.view.forced);
	assert_int_equal(back.history_count, MIRROR_HISTORY);
	assert_memory_equal(back.history, r.history, sizeof(r.history));
}

/* The text stays in the form of earlier versions, because a swap compares the whole text. */
static void a_history_without_in_sync_sets_is_accepted(void **state)
{
	char text[VALUE_MAX];
	struct mirror_record r, back;
	struct error err;

	(void)state;
	full_record(&r);
	r.history_count = 2;
	r.history[1].insync = 0;
	assert_int_equal(value_encode(&r, text, &err), 0);
	assert_non_null(strstr(text, "\"history\":[{\"epoch\":100,\"nonce\":\"0000000000000000\","
				     "\"seq\":0},{\"epoch\":99,"));
	assert_int_equal(value_decode(text, strlen(text), &back, &err), 0);
	assert_int_equal(back.history[0].insync, 0);
	same_after_a_round(&r);
}

/* Replace the first `from` in the text by `to`. The result must be refused. */
static void refused(const char *text, const char *from, const char *to)
{
	char changed[VALUE_MAX + 64];
	const char *at = strstr(text, from);
	struct mirror_record back = {.nonce = 5};
	struct error err;

	if (!at)
		fail_msg("the text has no %s", from);
	snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, to,
		 at + strlen(from));
	if (value_decode(changed, strlen(changed), &back, &err) != ERROR_ARGUMENT)
		fail_msg("accepted: %s instead of %s", to, from);
	assert_int_equal(err.cause, EPROTO);
	assert_int_equal(back.nonce, 5);
}

static void only_our_form_is_accepted(void **state)
{
	char text[VALUE_MAX];
	struct mirror_record r;
	struct error err;

	full_record(&r);
	assert_int_equal(value_encode(&r, text, &err), 0);
	refused(text, "{\"format\"", "{ \"format\"");
	refused(text, "\"number\":1", "\"number\":1.0");
	refused(text, "\"number\":1", "\"number\":-1");
	refused(text, "\"number\":1", "\"number\":\"1\"");
	refused(text, "\"number\":1,", "");
	refused(text, "\"number\":1,", "\"number\":1,\"newer\":2,");
	refused(text, "\"number\":1,", "\"number\":1,\"number\":1,");
	refused(text, "\"port\":65535", "\"port\":65536");
	refused(text, "\"manual\"", "\"maybe\"");
	refused(text, "\"slot\":7", "\"slot\":8");
	refused(text, "\"slot\":7", "\"slot\":0");
	refused(text, "\"name\":\"h\"", "\"name\":\"a\"");
	refused(text, "\"name\":\"h\"", "\"name\":\"\\u0068\"");
	refused(text, "\"id\":\"ffffffffffffffff\"", "\"id\":\"FFFFFFFFFFFFFFFF\"");
	refused(text, "\"id\":\"ffffffffffffffff\"", "\"id\":\"0000000000000000\"");
	refused(text, "\"insync\":[1,7]", "\"insync\":[7,1]");
	refused(text, "\"insync\":[1,7]", "\"insync\":[]");
	refused(text, "\"insync\":[1,7]", "\"insync\":[1,7,8]");
	refused(text, "\"insync\":[1,7]", "\"insync\":[1,7,-1]");
	refused(text, "\"primary\":7", "\"primary\":null");
	refused(text, "\"serving\"", "\"none\"");
	refused(text, "\"set\":\"orders.db-1\"", "\"set\":\"../orders\"");
	refused(text, "\"set\":\"orders.db-1\"", "\"set\":\"\"");
	refused(text, "\"min_copies\":1", "\"min_copies\":0");
	refused(text, "]}", "]} ");
	refused(text, "]}", "]");
}

static void what_is_not_a_record_is_refused(void **state)
{
	static const char *const texts[] = {"",
					    "null",
					    "7",
					    "[]",
					    "{}",
					    "{\"format\":\"1\"}",
					    "{\"format\":1}",
					    "{\"format\":1,\"config\":[]}",
					    "{\"format\":1,\"config\":{},\"view\":{}}"};
	struct mirror_record back;
	struct error err;
	char *big;

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(value_decode(texts[i], strlen(texts[i]), &back, &err),
				 ERROR_ARGUMENT);
		assert_int_equal(err.cause, EPROTO);
	}
	big = malloc(VALUE_MAX);
	memset(big, '[', VALUE_MAX);
	assert_int_equal(value_decode(big, VALUE_MAX, &back, &err), ERROR_ARGUMENT);
	assert_int_equal(value_decode(big, VALUE_MAX - 1, &back, &err), ERROR_ARGUMENT);
	free(big);
}

static void a_newer_format_is_named(void **state)
{
	static const char *const formats[] = {"3", "255", "9223372036854775807"};
	struct mirror_record back;
	struct error err;
	char text[128];

	for (unsigned i = 0; i < ARRAY_LEN(formats); i++) {
		snprintf(text, sizeof(text), "{\"format\":%s,\"something\":\"else\"}", formats[i]);
		assert_int_equal(value_decode(text, strlen(text), &back, &err), ERROR_ARGUMENT);
		assert_non_null(strstr(err.text, formats[i]));
		assert_non_null(strstr(err.text, "understands 1 to 2: upgrade it"));
	}
}

/*
 * If a text is cut, or one byte of it changes, then it is refused or it encodes to the same text.
 */
static void damaged_texts_are_refused_whole(void **state)
{
	char text[VALUE_MAX], again[VALUE_MAX];
	struct mirror_record r, back;
	struct error err;
	size_t len, accepted = 0;

	record_init(&r, "s");
	assert_int_equal(value_encode(&r, text, &err), 0);
	len = strlen(text);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(value_decode(text, cut, &back, &err), ERROR_ARGUMENT);
	for (size_t at = 0; at < len; at++) {
		char old = text[at];

		text[at] ^= 1;
		if (!value_decode(text, len, &back, &err)) {
			assert_int_equal(value_encode(&back, again, &err), 0);
			assert_memory_equal(text, again, len);
			accepted++;
		}
		text[at] = old;
	}
	/* some changes give another valid record, for instance another digit */
	assert_true(accepted > 0);
}

static void impossible_records_are_not_written(void **state)
{
	char text[VALUE_MAX];
	struct mirror_record r;
	struct error err;

	record_init(&r, "s");
	r.view.insync = 0;
	assert_int_equal(value_encode(&r, text, &err), ERROR_ARGUMENT);
	record_init(&r, "s");
	r.view.insync = 7;
	assert_int_equal(value_encode(&r, text, &err), ERROR_ARGUMENT);
	record_init(&r, "s");
	strcpy(r.config.members[0].path, "/new\nline");
	assert_int_equal(value_encode(&r, text, &err), ERROR_ARGUMENT);
	record_init(&r, "s");
	strcpy(r.config.members[0].path, "/\xff");
	assert_int_equal(value_encode(&r, text, &err), ERROR_ARGUMENT);
	record_init(&r, "s");
	r.config.size = 4097;
	assert_int_equal(value_encode(&r, text, &err), ERROR_ARGUMENT);
	record_init(&r, "s");
	r.view.epoch.number = 1ull << 63;
	assert_int_equal(value_encode(&r, text, &err), ERROR_ARGUMENT);
}

/* A record of eight members with the longest names and a full history. */
static void the_largest_record_fits(void **state)
{
	struct mirror_record r;

	full_record(&r);
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		struct mirror_member *m = &r.config.members[slot];

		m->id = slot + 1;
		memset(m->name, 'a' + (int)slot, MIRROR_NAME_MAX);
		memset(m->host, 'h', MIRROR_HOST_MAX);
		memset(m->path, '"', MIRROR_PATH_MAX);
		m->path[0] = '/';
		m->name[MIRROR_NAME_MAX] = m->host[MIRROR_HOST_MAX] = m->path[MIRROR_PATH_MAX] = 0;
	}
	for (unsigned i = 0; i < MIRROR_HISTORY; i++)
		r.history[i] = (struct mirror_ended){{INT64_MAX, UINT64_MAX}, INT64_MAX, UINT8_MAX};
	same_after_a_round(&r);
}

static void the_alive_keys_text_has_one_form(void **state)
{
	struct mirror_epoch epoch = {7, 0xc0ffee}, back;
	char text[ALIVE_MAX];
	uint64_t counter;

	alive_encode(epoch, UINT64_MAX, text);
	assert_int_equal(alive_decode(text, strlen(text), &back, &counter), 0);
	assert_true(mirror_epoch_is_equal(back, epoch));
	assert_int_equal(counter, UINT64_MAX);
	for (size_t cut = 0; cut < strlen(text); cut++)
		assert_int_equal(alive_decode(text, cut, &back, &counter), -EPROTO);
	strcat(text, " ");
	assert_int_equal(alive_decode(text, strlen(text), &back, &counter), -EPROTO);
	strcpy(text, "{\"epoch\":+7,\"nonce\":\"0000000000c0ffee\",\"counter\":1}");
	assert_int_equal(alive_decode(text, strlen(text), &back, &counter), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_survives_its_text),
		cmocka_unit_test(every_field_is_in_the_text),
		cmocka_unit_test(a_history_without_in_sync_sets_is_accepted),
		cmocka_unit_test(only_our_form_is_accepted),
		cmocka_unit_test(what_is_not_a_record_is_refused),
		cmocka_unit_test(a_newer_format_is_named),
		cmocka_unit_test(damaged_texts_are_refused_whole),
		cmocka_unit_test(impossible_records_are_not_written),
		cmocka_unit_test(the_largest_record_fits),
		cmocka_unit_test(the_alive_keys_text_has_one_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
