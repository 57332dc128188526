/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/register/value.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "mirror/core/record.h"

bool value_is_name(const char *name, size_t max)
{
	size_t len = strnlen(name, max + 1);

	if (!len || len > max || !isalnum((unsigned char)name[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
			return false;
	return true;
}

/* Returns true if the text is UTF-8 without control characters, safe for JSON and terminals. */
static bool value_is_text(const char *text)
{
	json_t *string;

	for (size_t i = 0; text[i]; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	string = json_string(text);
	json_decref(string);
	return string != NULL;
}

/* record_check() has already checked the NUL of each text. */
static const char *value_check_member(const struct mirror_member *m)
{
	if (!value_is_name(m->name, MIRROR_NAME_MAX))
		return "a member's name has other characters than letters, digits and ._-";
	if (!value_is_text(m->host) || strpbrk(m->host, " /,"))
		return "a member's host is no host";
	if (m->path[0] != '/' || !value_is_text(m->path))
		return "a member's path does not begin with '/' or has control characters";
	return NULL;
}

static const char *value_check_config(const struct mirror_config *config)
{
	const char *wrong = NULL;

	if (!value_is_name(config->set, MIRROR_SET_MAX))
		return "the set's name has other characters than letters, digits and ._-";
	if (config->address % MIRROR_BLOCK)
		return "the address is not in whole blocks";
	if (!config->lease_ms || !config->replica_timeout_ms)
		return "a time limit is zero";
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX && !wrong; slot++)
		if (config->members[slot].id)
			wrong = value_check_member(&config->members[slot]);
	return wrong;
}

/* Check the numbers: JSON's integers have 63 bits. */
static const char *value_check_numbers(const struct mirror_record *record)
{
	const struct mirror_view *view = &record->view;
	uint64_t all = record->config.number | view->epoch.number | view->seq;

	for (uint32_t i = 0; i < record->history_count; i++)
		all |= record->history[i].epoch.number | record->history[i].seq;
	return all > INT64_MAX ? "a number is too large" : NULL;
}

int value_check(const struct mirror_record *record, struct error *err)
{
	const char *wrong = record_check(record);

	if (!wrong)
		wrong = value_check_config(&record->config);
	if (!wrong && !record->view.insync)
		wrong = "no member is in-sync";
	if (!wrong)
		wrong = value_check_numbers(record);
	if (!wrong)
		return 0;
	return error_set(err, ERROR_ARGUMENT, EINVAL, "this cannot be the record of a set: %s",
			 wrong);
}
