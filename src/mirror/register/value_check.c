/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirror/register/value.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include <jansson.h>

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

/* UTF-8 without control characters, as JSON and terminals can hold it. */
static bool value_is_text(const char *text, size_t max)
{
	size_t len = strnlen(text, max + 1);
	json_t *string;

	if (!len || len > max)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	string = json_stringn(text, len);
	json_decref(string);
	return string != NULL;
}

static const char *value_check_member(const struct mirror_config *config, unsigned slot)
{
	const struct mirror_member *m = &config->members[slot];

	if (!value_is_name(m->name, MIRROR_NAME_MAX))
		return "a member's name";
	if (!value_is_text(m->host, MIRROR_HOST_MAX) || strpbrk(m->host, " /,"))
		return "a member's host";
	if (m->path[0] != '/' || !value_is_text(m->path, MIRROR_PATH_MAX))
		return "a member's path, which must begin with '/'";
	for (unsigned other = 0; other < slot; other++) {
		if (!config->members[other].id)
			continue;
		if (config->members[other].id == m->id)
			return "that two members have the same id";
		if (!strcmp(config->members[other].name, m->name))
			return "that two members have the same name";
	}
	return NULL;
}

static const char *value_check_config(const struct mirror_config *config)
{
	const char *wrong;

	if (!value_is_name(config->set, MIRROR_SET_MAX))
		return "the set's name";
	if (!config->size || config->size % MIRROR_BLOCK || config->size > MIRROR_SIZE_MAX)
		return "the size";
	if (config->address % MIRROR_BLOCK)
		return "the address";
	if (!config->min_copies || config->min_copies > MIRROR_MEMBERS_MAX)
		return "min_copies";
	if ((unsigned)config->lonely > MIRROR_LONELY_MANUAL)
		return "lonely";
	if (!config->lease_ms || !config->replica_timeout_ms)
		return "a time limit of zero";
	if (config->number > INT64_MAX)
		return "the number of the configuration";
	if (!mirror_config_members(config))
		return "that there is no member";
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		wrong = config->members[slot].id ? value_check_member(config, slot) : NULL;
		if (wrong)
			return wrong;
	}
	return NULL;
}

static const char *value_check_view(const struct mirror_record *record)
{
	const struct mirror_view *view = &record->view;

	if (view->epoch.number > INT64_MAX || view->seq > INT64_MAX)
		return "the view's numbers";
	if ((unsigned)view->phase > MIRROR_PHASE_SERVING)
		return "the phase";
	if (!view->insync || (view->insync & ~mirror_config_members(&record->config)))
		return "the in-sync set";
	if ((view->phase == MIRROR_PHASE_NONE) != (view->primary == MIRROR_NOBODY))
		return "the phase, which does not fit to the primary";
	if (view->primary != MIRROR_NOBODY &&
	    (view->primary >= MIRROR_MEMBERS_MAX || !(view->insync & MIRROR_BIT(view->primary))))
		return "the primary, who must be in sync";
	if (record->history_count > MIRROR_HISTORY)
		return "the length of the history";
	for (uint32_t i = 0; i < record->history_count; i++)
		if (record->history[i].epoch.number > INT64_MAX ||
		    record->history[i].seq > INT64_MAX)
			return "the history's numbers";
	return NULL;
}

int value_check(const struct mirror_record *record, struct error *err)
{
	const char *wrong = value_check_config(&record->config);

	if (!wrong)
		wrong = value_check_view(record);
	if (!wrong)
		return 0;
	return error_set(err, ERROR_ARGUMENT, EINVAL,
			 "this cannot be the record of a set: %s is wrong", wrong);
}
