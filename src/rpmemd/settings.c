/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpmemd/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOME_WORD "$HOME"

/* Parses a value. Returns NULL, or a description of the valid values. */
typedef const char *settings_parser(struct settings *s, void *field, const char *value);

static const char *settings_parse_path(struct settings *s, void *field, const char *value)
{
	if (strlen(value) >= PATH_MAX)
		return "a path that is not longer than the system's limit";
	strcpy(field, value);
	return NULL;
}

/* The name of a log file also turns off syslog. */
static const char *settings_parse_log_file(struct settings *s, void *field, const char *value)
{
	s->use_syslog = false;
	return settings_parse_path(s, field, value);
}

static const char *settings_parse_switch(struct settings *s, void *field, const char *value)
{
	bool yes = !strcmp(value, "yes");

	if (!yes && strcmp(value, "no") != 0)
		return "'yes' or 'no'";
	*(bool *)field = yes;
	return NULL;
}

static const char *settings_parse_level(struct settings *s, void *field, const char *value)
{
	static const struct {
		const char *name;
		enum log_level level;
	} levels[] = {{"err", LOG_LVL_ERROR},
		      {"warn", LOG_LVL_WARNING},
		      {"notice", LOG_LVL_NOTICE},
		      {"info", LOG_LVL_INFO},
		      {"debug", LOG_LVL_DEBUG}};

	for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (!strcmp(value, levels[i].name)) {
			*(enum log_level *)field = levels[i].level;
			return NULL;
		}
	return "err, warn, notice, info or debug";
}

static bool settings_parse_number(const char *value, unsigned long max, unsigned long *out,
				  char **end)
{
	if (!isdigit((unsigned char)value[0]))
		return false;
	errno = 0;
	*out = strtoul(value, end, 10);
	return !errno && *out <= max;
}

#define SETTINGS_COUNT_MAX 1000000

static const char *settings_parse_count(struct settings *s, void *field, const char *value)
{
	unsigned long n;
	char *end;

	if (!settings_parse_number(value, SETTINGS_COUNT_MAX, &n, &end) || *end || !n)
		return "a number from 1 to 1000000";
	*(unsigned *)field = (unsigned)n;
	return NULL;
}

static const char *settings_parse_lanes(struct settings *s, void *field, const char *value)
{
	unsigned long n;
	char *end;

	if (!settings_parse_number(value, SETTINGS_LANES_MAX, &n, &end) || *end || !n)
		return "a number from 1 to 1024";
	*(unsigned *)field = (unsigned)n;
	return NULL;
}

static const char *settings_parse_threads(struct settings *s, void *field, const char *value)
{
	unsigned long n;
	char *end;

	if (!settings_parse_number(value, SETTINGS_LANES_MAX, &n, &end) || *end)
		return "a number from 0 to 1024";
	*(unsigned *)field = (unsigned)n;
	return NULL;
}

static const char *settings_parse_ports(struct settings *s, void *field, const char *value)
{
	static const char *const rule = "FIRST-LAST, ports from 1 to 65535, or 0 for any";
	unsigned long first, last;
	char *end;

	if (!settings_parse_number(value, UINT16_MAX, &first, &end))
		return rule;
	last = first;
	if (*end == '-' && !settings_parse_number(end + 1, UINT16_MAX, &last, &end))
		return rule;
	if (*end || last < first || (!first && last))
		return rule;
	*(struct settings_ports *)field = (struct settings_ports){(uint16_t)first, (uint16_t)last};
	return NULL;
}

static const char *settings_parse_listen(struct settings *s, void *field, const char *value)
{
	return address_parse_listen(value, SETTINGS_DEFAULT_PORT, field, NULL)
		       ? "ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT"
		       : NULL;
}

static const struct settings_row {
	const char *name;
	settings_parser *parse;
	size_t field;
} settings_rows[] = {
#define ROW(name, parse, field)                                                                    \
	{                                                                                          \
		name, settings_parse_##parse, offsetof(struct settings, field)                     \
	}
	ROW("log-file", log_file, log_file),
	ROW("poolset-dir", path, poolset_dir),
	ROW("persist-apm", switch, persist_apm),
	ROW("persist-general", switch, persist_general),
	ROW("persist-native", switch, persist_native),
	ROW("use-syslog", switch, use_syslog),
	ROW("log-level", level, log_level),
	ROW("nthreads", threads, nthreads),
	ROW("max-lanes", lanes, max_lanes),
	ROW("port-range", ports, ports),
	ROW("listen", listen, listen),
	ROW("secret-file", path, secret_file),
	ROW("max-pools", count, max_pools),
	ROW("max-per-address", count, max_per_address),
	ROW("max-pending", count, max_pending),
	ROW("allow-volatile", switch, allow_volatile),
#undef ROW
};
#define SETTINGS_ROWS (sizeof(settings_rows) / sizeof(settings_rows[0]))

const char *settings_key(unsigned i, bool *is_switch)
{
	if (i >= SETTINGS_ROWS)
		return NULL;
	*is_switch = settings_rows[i].parse == settings_parse_switch;
	return settings_rows[i].name;
}

void settings_init(struct settings *s, const char *home)
{
	*s = (struct settings){
		.log_file = "/var/log/rpmemd.log",
		.use_syslog = true,
		.persist_native = true,
		.persist_general = true,
		.log_level = LOG_LVL_ERROR,
		.listen = {.host = "127.0.0.1", .port = SETTINGS_DEFAULT_PORT},
		.max_lanes = SETTINGS_LANES_MAX,
		.max_pools = 64,
		.max_per_address = 16,
		.max_pending = 32,
	};
	snprintf(s->poolset_dir, sizeof(s->poolset_dir), "%s", home);
}

int settings_set(struct settings *s, const char *key, const char *value, struct error *err)
{
	const struct settings_row *row = settings_rows;
	const char *rule;

	while (row < settings_rows + SETTINGS_ROWS && strcmp(row->name, key) != 0)
		row++;
	if (row == settings_rows + SETTINGS_ROWS)
		return error_set(err, ERROR_ARGUMENT, EINVAL, "there is no key '%s'", key);
	rule = value[0] ? row->parse(s, (char *)s + row->field, value) : "not empty";
	return rule ? error_set(err, ERROR_ARGUMENT, EINVAL,
				"%s: '%s' is not a valid value: it must be %s", key, value, rule)
		    : 0;
}

/* Replace the first $HOME, unless it is the beginning of a longer word. */
static int settings_replace_home(char path[PATH_MAX], const char *home, struct error *err)
{
	char *word = strstr(path, HOME_WORD), *after = word ? word + strlen(HOME_WORD) : NULL;
	char replaced[PATH_MAX];
	int n;

	if (!word || isalnum((unsigned char)*after))
		return 0;
	n = snprintf(replaced, sizeof(replaced), "%.*s%s%s", (int)(word - path), path, home, after);
	if (n < 0 || n >= (int)sizeof(replaced))
		return error_set(err, ERROR_ARGUMENT, EINVAL, "%s is too long with $HOME as %s",
				 path, home);
	memcpy(path, replaced, (size_t)n + 1);
	return 0;
}

int settings_finish(struct settings *s, const char *home, struct error *err)
{
	int rc = settings_replace_home(s->poolset_dir, home, err);

	if (!rc)
		rc = settings_replace_home(s->log_file, home, err);
	if (!rc)
		rc = settings_replace_home(s->secret_file, home, err);
	if (!rc && s->poolset_dir[0] != '/')
		rc = error_set(err, ERROR_ARGUMENT, EINVAL,
			       "poolset-dir %s is not an absolute path", s->poolset_dir);
	return rc;
}
