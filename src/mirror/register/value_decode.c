/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/register/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "mirror/core/version.h"
#include "mirror/core/words.h"

/* Reads members of a JSON object. The first defect is recorded; values read after it do not
 * count. */
struct value_reader {
	const char *wrong;
};

static void value_reject(struct value_reader *r, const char *key)
{
	if (!r->wrong)
		r->wrong = key;
}

static uint64_t value_number(struct value_reader *r, const json_t *object, const char *key,
			     uint64_t max)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value) && json_integer_value(value) >= 0 &&
	    (uint64_t)json_integer_value(value) <= max)
		return (uint64_t)json_integer_value(value);
	value_reject(r, key);
	return 0;
}

static bool value_bool(struct value_reader *r, const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_boolean(value))
		value_reject(r, key);
	return json_is_true(value);
}

/* Returns "" if the value is missing or wrong. */
static const char *value_string(struct value_reader *r, const json_t *object, const char *key,
				size_t max)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_string(value) && json_string_length(value) <= max)
		return json_string_value(value);
	value_reject(r, key);
	return "";
}

static void value_copy(struct value_reader *r, const json_t *object, const char *key, char *text,
		       size_t max)
{
	const char *value = value_string(r, object, key, max);

	memcpy(text, value, strlen(value) + 1);
}

/* Reads hexadecimal digits; value_check_form() refuses upper-case digits. */
static uint64_t value_hex(struct value_reader *r, const json_t *object, const char *key)
{
	const char *value = value_string(r, object, key, 16);

	if (strlen(value) != 16 || strspn(value, "0123456789abcdef") != 16) {
		value_reject(r, key);
		return 0;
	}
	return strtoull(value, NULL, 16);
}

static void value_uuid(struct value_reader *r, const json_t *object, struct mirror_uuid *uuid)
{
	const char *value = value_string(r, object, "uuid", 32);

	if (strlen(value) != 32 || strspn(value, "0123456789abcdef") != 32) {
		value_reject(r, "uuid");
		return;
	}
	for (unsigned i = 0; i < sizeof(uuid->bytes); i++) {
		char digits[3] = {value[2 * i], value[2 * i + 1], '\0'};

		uuid->bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
}

static unsigned value_word(struct value_reader *r, const json_t *object, const char *key,
			   const char *const words[])
{
	int found = words_find(words, value_string(r, object, key, 32));

	if (found >= 0)
		return (unsigned)found;
	value_reject(r, key);
	return 0;
}

static const json_t *value_array(struct value_reader *r, const json_t *object, const char *key,
				 size_t max)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_array(value) && json_array_size(value) <= max)
		return value;
	value_reject(r, key);
	return NULL;
}

static void value_members(struct value_reader *r, const json_t *config, struct mirror_config *c)
{
	const json_t *members = value_array(r, config, "members", MIRROR_MEMBERS_MAX);

	for (size_t i = 0; i < json_array_size(members); i++) {
		const json_t *object = json_array_get(members, i);
		struct mirror_member *m =
			&c->members[value_number(r, object, "slot", MIRROR_MEMBERS_MAX - 1)];

		m->id = value_hex(r, object, "id");
		value_copy(r, object, "name", m->name, MIRROR_NAME_MAX);
		value_copy(r, object, "host", m->host, MIRROR_HOST_MAX);
		m->port = (uint16_t)value_number(r, object, "port", UINT16_MAX);
		value_copy(r, object, "path", m->path, MIRROR_PATH_MAX);
	}
}

static void value_config(struct value_reader *r, const json_t *object, struct mirror_config *c)
{
	value_copy(r, object, "set", c->set, MIRROR_SET_MAX);
	value_uuid(r, object, &c->uuid);
	c->number = value_number(r, object, "number", INT64_MAX);
	c->size = value_number(r, object, "size", MIRROR_SIZE_MAX);
	c->address = value_hex(r, object, "address");
	c->min_copies = (uint32_t)value_number(r, object, "min_copies", MIRROR_MEMBERS_MAX);
	c->lonely = (enum mirror_lonely)value_word(r, object, "lonely", words_lonely);
	c->lease_ms = (uint32_t)value_number(r, object, "lease_ms", UINT32_MAX);
	c->replica_timeout_ms = (uint32_t)value_number(r, object, "replica_timeout_ms", UINT32_MAX);
	c->slow_ms = (uint32_t)value_number(r, object, "slow_ms", UINT32_MAX);
	c->holdoff_ms = (uint32_t)value_number(r, object, "holdoff_ms", UINT32_MAX);
	c->blocked_ms = (uint32_t)value_number(r, object, "blocked_ms", UINT32_MAX);
	c->local_error_continues = value_bool(r, object, "local_error_continues");
	value_members(r, object, c);
}

static mirror_mask value_insync(struct value_reader *r, const json_t *object)
{
	const json_t *insync = value_array(r, object, "insync", MIRROR_MEMBERS_MAX);
	mirror_mask mask = 0;

	for (size_t i = 0; i < json_array_size(insync); i++) {
		json_int_t slot = json_integer_value(json_array_get(insync, i));

		if (slot < 0 || slot >= MIRROR_MEMBERS_MAX)
			value_reject(r, "insync");
		else
			mask |= MIRROR_BIT(slot);
	}
	return mask;
}

static void value_view(struct value_reader *r, const json_t *object, struct mirror_view *view)
{
	view->epoch.number = value_number(r, object, "epoch", INT64_MAX);
	view->epoch.nonce = value_hex(r, object, "nonce");
	view->seq = value_number(r, object, "seq", INT64_MAX);
	view->phase = (enum mirror_phase)value_word(r, object, "phase", words_phase);
	view->primary = MIRROR_NO_SLOT;
	if (!json_is_null(json_object_get(object, "primary")))
		view->primary = (uint8_t)value_number(r, object, "primary", MIRROR_MEMBERS_MAX - 1);
	view->clean = value_bool(r, object, "clean");
	view->forced = value_bool(r, object, "forced");
	view->insync = value_insync(r, object);
}

static void value_ended(struct value_reader *r, const json_t *object, struct mirror_ended *ended)
{
	ended->epoch.number = value_number(r, object, "epoch", INT64_MAX);
	ended->epoch.nonce = value_hex(r, object, "nonce");
	ended->seq = value_number(r, object, "seq", INT64_MAX);
	if (json_object_get(object, "insync")) /* earlier versions did not write this member */
		ended->insync = value_insync(r, object);
}

static void value_record(struct value_reader *r, const json_t *object, struct mirror_record *record)
{
	const json_t *history = value_array(r, object, "history", MIRROR_HISTORY);

	value_config(r, json_object_get(object, "config"), &record->config);
	value_view(r, json_object_get(object, "view"), &record->view);
	record->nonce = value_hex(r, object, "nonce");
	record->history_count = (uint32_t)json_array_size(history);
	for (uint32_t i = 0; i < record->history_count; i++)
		value_ended(r, json_array_get(history, i), &record->history[i]);
}

/* Check the format first: a newer program's format is not damage, so it has its own error. */
static int value_check_format(const json_t *object, struct error *err)
{
	const json_t *format = json_object_get(object, "format");
	struct mirror_versions ours = version_ours();
	json_int_t number = json_integer_value(format);

	if (!json_is_integer(format))
		return error_set(
			err, ERROR_ARGUMENT, EPROTO,
			"the register's value is not the record of a mirror set: it has no format");
	if (number >= ours.lowest && number <= ours.newest)
		return 0;
	return error_set(err, ERROR_ARGUMENT, EPROTO,
			 "the register's record has format %" JSON_INTEGER_FORMAT
			 ", and this program understands %u to %u: %s",
			 number, ours.lowest, ours.newest,
			 number > ours.newest
				 ? "upgrade it"
				 : "a release between them has to raise the format first "
				   "(rpmirror set)");
}

/* Compare the whole text, including parts that were not parsed, so that the next swap drops no
 * unknown part. */
static int value_check_form(const struct mirror_record *record, const char *text, size_t len,
			    struct error *err)
{
	char *again = malloc(VALUE_MAX);
	int rc;

	if (!again)
		return error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for a record");
	rc = value_encode(record, again, err);
	if (rc)
		rc = error_set(err, ERROR_ARGUMENT, EPROTO, "%s", err ? err->text : "");
	else if (strlen(again) != len || memcmp(again, text, len) != 0)
		rc = error_set(
			err, ERROR_ARGUMENT, EPROTO,
			"the register's record is not in the form that rpmirror writes; was it edited?");
	free(again);
	return rc;
}

static int value_decode_object(const json_t *object, const char *text, size_t len,
			       struct mirror_record *record, struct error *err)
{
	struct value_reader reader = {0};
	int rc = value_check_format(object, err);

	if (rc)
		return rc;
	record->config.format = (uint32_t)json_integer_value(json_object_get(object, "format"));
	value_record(&reader, object, record);
	if (reader.wrong)
		return error_set(err, ERROR_ARGUMENT, EPROTO,
				 "the register's record is damaged: '%s' is absent or wrong",
				 reader.wrong);
	return value_check_form(record, text, len, err);
}

int value_decode(const char *text, size_t len, struct mirror_record *record, struct error *err)
{
	struct mirror_record *fresh;
	json_error_t where;
	json_t *object;
	int rc;

	if (len >= VALUE_MAX)
		return error_set(err, ERROR_ARGUMENT, EPROTO,
				 "the register's value has %zu bytes, which is no record", len);
	object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
	if (!object)
		return error_set(err, ERROR_ARGUMENT, EPROTO,
				 "the register's value is not JSON: %s at byte %d", where.text,
				 where.position);
	fresh = calloc(1, sizeof(*fresh));
	rc = fresh ? value_decode_object(object, text, len, fresh, err)
		   : error_set(err, ERROR_LOCAL, ENOMEM, "out of memory for a record");
	if (!rc)
		*record = *fresh;
	free(fresh);
	json_decref(object);
	return rc;
}
