/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Changes a set's settings. view_set_config() decides which setting may change in which state.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "mirror/core/version.h"
#include "mirror/core/words.h"
#include "mirrord/requests.h"

static bool settings_number(const json_t *value, uint32_t *to)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < 0 || number > UINT32_MAX)
		return false;
	*to = (uint32_t)number;
	return true;
}

static bool settings_lonely(const json_t *value, enum mirror_lonely *lonely)
{
	const char *word = json_string_value(value);
	int found = word ? words_find(words_lonely, word) : -1;

	if (found >= 0)
		*lonely = (enum mirror_lonely)found;
	return found >= 0;
}

static bool settings_local_error(const json_t *value, bool *continues)
{
	const char *word = json_string_value(value);

	*continues = word && !strcmp(word, "continue");
	return *continues || (word && !strcmp(word, "stop"));
}

static bool settings_address(const json_t *value, uint64_t *address)
{
	const char *word = json_string_value(value);
	char *end;

	if (!word || !*word || strspn(word, "0123456789abcdefABCDEFx") != strlen(word))
		return false;
	*address = strtoull(word, &end, 16);
	return !*end && !(*address % MIRROR_BLOCK);
}

static bool settings_host(struct mirror_config *config, const char *name, const json_t *value)
{
	uint8_t slot = mirror_config_find(config, name);
	const char *host = json_string_value(json_object_get(value, "host"));
	json_int_t port = json_integer_value(json_object_get(value, "port"));
	struct mirror_member *member = &config->members[slot % MIRROR_MEMBERS_MAX];

	if (slot == MIRROR_NO_SLOT || !host || !*host || strlen(host) > MIRROR_HOST_MAX ||
	    port < 1 || port > UINT16_MAX)
		return false;
	memset(member->host, 0, sizeof(member->host));
	strcpy(member->host, host);
	member->port = (uint16_t)port;
	return true;
}

static bool settings_hosts(struct mirror_config *config, json_t *hosts)
{
	const char *name;
	json_t *value;

	json_object_foreach(hosts, name, value)
	{
		if (!settings_host(config, name, value))
			return false;
	}
	return json_is_object(hosts);
}

static bool settings_apply(struct mirror_config *config, const char *key, json_t *value)
{
	const struct {
		const char *key;
		uint32_t *to;
	} numbers[] = {
		{"min_copies", &config->min_copies},
		{"lease_ms", &config->lease_ms},
		{"replica_timeout_ms", &config->replica_timeout_ms},
		{"slow_ms", &config->slow_ms},
		{"holdoff_ms", &config->holdoff_ms},
		{"blocked_ms", &config->blocked_ms},
		{"format", &config->format},
	};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (!strcmp(numbers[i].key, key))
			return settings_number(value, numbers[i].to);
	if (!strcmp(key, "lonely"))
		return settings_lonely(value, &config->lonely);
	if (!strcmp(key, "local_error"))
		return settings_local_error(value, &config->local_error_continues);
	if (!strcmp(key, "address"))
		return settings_address(value, &config->address);
	return !strcmp(key, "hosts") && settings_hosts(config, value);
}

/*
 * Returns the highest format that this member supports: both its daemon, and the process that maps
 * the set on its host.
 */
static unsigned settings_format_of(struct set *s, uint8_t slot)
{
	struct neighbour_answer answer;

	if (slot == s->meta.super.slot)
		return s->holder.pid ? s->holder.version : version_newest();
	neighbours_get(s->neighbours, slot, &answer);
	return answer.answers && answer.copy_id == s->entry.record.config.members[slot].id
		       ? answer.status.format
		       : 0;
}

/*
 * Check that no program of the set gets a format that it does not support. Returns false after a
 * refusal.
 */
static bool settings_may_raise(struct client *client, struct set *s,
			       const struct mirror_config *config)
{
	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		unsigned format =
			config->members[slot].id ? settings_format_of(s, slot) : config->format;

		if (format >= config->format)
			continue;
		if (!format)
			request_refuse(client, CODE_UNREACHABLE,
				       "the daemons of all members must answer",
				       "it is not known which formats member %s understands",
				       config->members[slot].name);
		else
			request_refuse(client, CODE_CONFIG,
				       "upgrade that host, and start what maps the set again",
				       "rpmirrord or librpmirror of member %s understands formats "
				       "up to %u only",
				       config->members[slot].name, format);
		return false;
	}
	return true;
}

void request_settings(struct client *client, struct set *s, json_t *settings)
{
	static struct mirror_config config; /* static, because it is large */
	const char *key;
	json_t *value;

	config = s->entry.record.config;
	json_object_foreach(settings, key, value)
	{
		if (settings_apply(&config, key, value))
			continue;
		request_refuse(client, CODE_USAGE, NULL,
			       "'%.40s' is no setting, or has no such value", key);
		return;
	}
	if (!json_object_size(settings))
		request_refuse(client, CODE_USAGE, NULL, "there are no settings");
	else if (config.format <= s->entry.record.config.format ||
		 settings_may_raise(client, s, &config))
		request_change(client, s, &config);
}
