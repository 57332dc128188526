/* SPDX-License-Identifier: BSD-3-Clause */
#include "mirrord/conf_keys.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "service/keyfile.h"

void conf_init(struct conf *c)
{
	memset(c, 0, sizeof(*c));
	snprintf(c->listen.host, sizeof(c->listen.host), "0.0.0.0");
	snprintf(c->listen.port, sizeof(c->listen.port), CONF_DEFAULT_PORT);
	snprintf(c->socket, sizeof(c->socket), CONF_SOCKET);
	c->peer_timeout_ms = 1000;
	c->register_timeout_ms = 2000;
	c->max_connections = 1024;
	c->max_pending = 64;
	c->log_level = LOG_LVL_NOTICE;
}

static const char *conf_parse_text(void *field, size_t size, const char *value)
{
	if (!value[0] || strlen(value) >= size)
		return "a text that is not empty and not too long";
	memcpy(field, value, strlen(value) + 1);
	return NULL;
}

static const char *conf_parse_path(void *field, size_t size, const char *value)
{
	if (value[0] != '/' || strlen(value) >= size)
		return "an absolute path";
	memcpy(field, value, strlen(value) + 1);
	return NULL;
}

static const char *conf_parse_switch(void *field, size_t size, const char *value)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return "yes or no";
	*(bool *)field = value[0] == 'y';
	return NULL;
}

static bool conf_read_number(const char *value, unsigned long min, unsigned long max, unsigned *out)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)value[0]))
		return false;
	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno || *end || n < min || n > max)
		return false;
	*out = (unsigned)n;
	return true;
}

static const char *conf_parse_count(void *field, size_t size, const char *value)
{
	return conf_read_number(value, 1, 1000000, field) ? NULL : "a number from 1 to 1000000";
}

static const char *conf_parse_ms(void *field, size_t size, const char *value)
{
	return conf_read_number(value, 50, 600000, field) ? NULL
							  : "milliseconds, from 50 to 600000";
}

static const char *conf_parse_listen(void *field, size_t size, const char *value)
{
	return address_parse_listen(value, CONF_DEFAULT_PORT, field, NULL) ? "HOST or HOST:PORT"
									   : NULL;
}

static const char *conf_parse_level(void *field, size_t size, const char *value)
{
	static const char *const words[] = {"err", "warn", "notice", "info", "debug"};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(value, words[i])) {
			*(enum log_level *)field = (enum log_level)(LOG_LVL_ERROR + (int)i);
			return NULL;
		}
	return "err, warn, notice, info or debug";
}

static const char *conf_parse_period(void *field, size_t size, const char *value)
{
	static const char units[] = "smhdw";
	static const unsigned seconds[] = {1, 60, 3600, 86400, 604800};
	const char *unit = value[0] ? strchr(units, value[strlen(value) - 1]) : NULL;
	char number[16];
	unsigned n;

	if (!strcmp(value, "never")) {
		*(unsigned *)field = 0;
		return NULL;
	}
	if (!unit || !*unit || strlen(value) > sizeof(number))
		return "never, or a number and s, m, h, d or w";
	snprintf(number, sizeof(number), "%.*s", (int)strlen(value) - 1, value);
	if (!conf_read_number(number, 1, 1000, &n))
		return "never, or a number to 1000 and s, m, h, d or w";
	*(unsigned *)field = n * seconds[unit - units];
	return NULL;
}

static const char *conf_parse_rate(void *field, size_t size, const char *value)
{
	unsigned n;

	if (!conf_read_number(value, 1, 1000000, &n))
		return "MiB a second, from 1 to 1000000";
	*(uint64_t *)field = (uint64_t)n << 20;
	return NULL;
}

/* The key may be repeated, so `field` is struct conf_set itself. */
static const char *conf_parse_user(void *field, size_t size, const char *value)
{
	struct conf_set *set = field;

	if (set->user_count == CONF_USERS_MAX)
		return "one of at most 8 users";
	if (!value[0] || strlen(value) > CONF_USER_MAX)
		return "the name or number of a user";
	memcpy(set->users[set->user_count++], value, strlen(value) + 1);
	return NULL;
}

#define CONF_ROW(type, name, parse, field, when)                                                   \
	{                                                                                          \
		name, parse, offsetof(struct type, field), sizeof(((struct type *)NULL)->field),   \
			when                                                                       \
	}
#define CONF_KEY(type, name, parse, field)   CONF_ROW(type, name, parse, field, CONF_NOW)
#define CONF_FIXED(type, name, parse, field) CONF_ROW(type, name, parse, field, CONF_AT_START)
#define CONF_CHECK(type, name, parse, field) CONF_ROW(type, name, parse, field, CONF_CHECKED)

const struct conf_key conf_keys[] = {
	CONF_FIXED(conf, "listen", conf_parse_listen, listen),
	CONF_FIXED(conf, "socket", conf_parse_path, socket),
	CONF_KEY(conf, "peer-timeout", conf_parse_ms, peer_timeout_ms),
	CONF_FIXED(conf, "register-timeout", conf_parse_ms, register_timeout_ms),
	CONF_KEY(conf, "max-connections", conf_parse_count, max_connections),
	CONF_KEY(conf, "max-pending", conf_parse_count, max_pending),
	CONF_KEY(conf, "log-level", conf_parse_level, log_level),
	{0},
};

const struct conf_key conf_set_keys[] = {
	CONF_FIXED(conf_set, "member", conf_parse_text, member),
	CONF_FIXED(conf_set, "data", conf_parse_path, data),
	CONF_FIXED(conf_set, "meta", conf_parse_path, meta),
	CONF_CHECK(conf_set, "register", conf_parse_text, register_uri),
	CONF_CHECK(conf_set, "secret-file", conf_parse_path, secret_file),
	{"user", conf_parse_user, 0, 0, CONF_CHECKED},
	CONF_KEY(conf_set, "auto", conf_parse_switch, automatic),
	CONF_KEY(conf_set, "scrub", conf_parse_period, scrub_s),
	CONF_KEY(conf_set, "scrub-rate", conf_parse_rate, scrub_rate),
	CONF_KEY(conf_set, "on-promote", conf_parse_path, on_promote),
	CONF_KEY(conf_set, "on-promote-timeout", conf_parse_ms, promote_timeout_ms),
	CONF_KEY(conf_set, "fence-agent", conf_parse_path, fence_agent),
	CONF_KEY(conf_set, "fence-timeout", conf_parse_ms, fence_timeout_ms),
	{0},
};

struct conf_state {
	struct conf *conf;
	struct conf_set *set; /* the current section; NULL: before the first one */
	/* a bit for each key that the section has; the key for users may be repeated */
	uint32_t seen;
};

static int conf_begin_set(void *arg, const char *words, struct error *err)
{
	struct conf_state *s = arg;
	struct conf *c = s->conf;
	const char *name = words + strcspn(words, " ");

	if (strncmp(words, "set", 3) != 0 || name != words + 3)
		return error_set(err, ERROR_ARGUMENT, EINVAL, "a section is '[set NAME]'");
	name += strspn(name, " \t");
	if (!name[0] || strlen(name) > MIRROR_SET_MAX || strpbrk(name, "/ \t"))
		return error_set(err, ERROR_ARGUMENT, EINVAL,
				 "'%s' is no name of a set: 1 to %d characters, no space nor '/'",
				 name, MIRROR_SET_MAX);
	for (unsigned i = 0; i < c->set_count; i++)
		if (!strcmp(c->sets[i].name, name))
			return error_set(err, ERROR_ARGUMENT, EEXIST,
					 "set '%s' is configured twice", name);
	if (c->set_count == CONF_SETS_MAX)
		return error_set(err, ERROR_ARGUMENT, E2BIG, "more than %d sets", CONF_SETS_MAX);
	s->set = &c->sets[c->set_count++];
	s->set->scrub_s = CONF_SCRUB_S;
	s->set->scrub_rate = CONF_SCRUB_RATE;
	s->set->promote_timeout_ms = s->set->fence_timeout_ms = CONF_PROGRAM_MS;
	s->seen = 0;
	memcpy(s->set->name, name, strlen(name) + 1);
	return 0;
}

static int conf_set_value(void *arg, const char *key, const char *value, struct error *err)
{
	struct conf_state *s = arg;
	const struct conf_key *keys = s->set ? conf_set_keys : conf_keys;
	char *base = s->set ? (char *)s->set : (char *)s->conf;
	const char *rule;

	for (unsigned i = 0; keys[i].name; i++) {
		if (strcmp(keys[i].name, key) != 0)
			continue;
		if (keys[i].size && s->seen & 1u << i)
			return error_set(err, ERROR_ARGUMENT, EEXIST, "'%s' is set twice", key);
		s->seen |= 1u << i;
		rule = keys[i].parse(base + keys[i].offset, keys[i].size, value);
		return rule ? error_set(err, ERROR_ARGUMENT, EINVAL,
					"%s = %s: the value must be %s", key, value, rule)
			    : 0;
	}
	return error_set(err, ERROR_ARGUMENT, EINVAL, "there is no key '%s' %s", key,
			 s->set ? "in a set's section" : "before the first section");
}

static const struct keyfile_reader conf_reader = {.set = conf_set_value,
						  .begin_section = conf_begin_set};

int conf_parse(struct conf *c, const char *text, size_t len, const char *name, struct error *err)
{
	struct conf_state state = {.conf = c};

	return keyfile_parse(text, len, name, &conf_reader, &state, err);
}

static int conf_missing(const struct conf_set *set, const char *key, struct error *err)
{
	return error_set(err, ERROR_ARGUMENT, EINVAL, "set '%s' has no '%s'", set->name, key);
}

int conf_check(const struct conf *c, struct error *err)
{
	for (unsigned i = 0; i < c->set_count; i++) {
		const struct conf_set *set = &c->sets[i];

		if (!set->member[0])
			return conf_missing(set, "member", err);
		if (!set->data[0])
			return conf_missing(set, "data", err);
		if (!set->register_uri[0])
			return conf_missing(set, "register", err);
	}
	return 0;
}

int conf_load(struct conf *c, const char *path, struct error *err)
{
	struct conf_state state = {.conf = c};
	int rc;

	conf_init(c);
	rc = keyfile_load(path, &conf_reader, &state, err);
	if (!rc)
		rc = conf_check(c, err);
	for (unsigned i = 0; !rc && i < c->set_count; i++)
		rc = conf_check_files(c, &c->sets[i], err);
	return rc;
}
