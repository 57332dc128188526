/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror set: changes settings that `rpmirror init` has chosen for a set. */
#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "commands.h"
#include "mirror/core/types.h"
#include "place.h"
#include "settings.h"

#define SETTINGS_FOR_EVER "for-ever"
#define SETTINGS_HELP     "see 'rpmirror set --help'"

struct settings_row {
	/* name: the word on the command line; key: the word in the request, which is also the
	 * register's word */
	const char *name, *key;
	enum settings_kind { SETTINGS_MS, SETTINGS_NUMBER, SETTINGS_TEXT } kind;
};

static const struct settings_row settings_rows[] = {
	{"min-copies", "min_copies", SETTINGS_NUMBER},
	{"lease", "lease_ms", SETTINGS_MS},
	{"replica-timeout", "replica_timeout_ms", SETTINGS_MS},
	{"slow", "slow_ms", SETTINGS_MS},
	{"holdoff", "holdoff_ms", SETTINGS_MS},
	{"blocked", "blocked_ms", SETTINGS_MS},
	{"lonely", "lonely", SETTINGS_TEXT},
	{"local-error", "local_error", SETTINGS_TEXT},
	{"address", "address", SETTINGS_TEXT},
	{"format", "format", SETTINGS_NUMBER},
};

/* Settings of `rpmirror init` that another command changes; the hint names that command. */
static const struct {
	const char *name, *hint;
} settings_elsewhere[] = {
	{"size", "rpmirror grow"},
	{"member", "rpmirror member"},
	{"secret", "put the new one on all hosts, and reload all daemons: rpmirrord.conf(5)"},
	{"register", "a set stays in its register"},
	{"hot-extents", "they belong to a copy's file: rpmirror member replace, and init --join "
			"--hot-extents"},
};

static int settings_refuse(const char *name, struct failure *f)
{
	for (unsigned i = 0; i < sizeof(settings_elsewhere) / sizeof(settings_elsewhere[0]); i++)
		if (!strcmp(settings_elsewhere[i].name, name))
			return failure_set(f, CODE_USAGE, settings_elsewhere[i].hint,
					   "'%s' is not changed by 'rpmirror set'", name);
	return failure_set(f, CODE_USAGE, SETTINGS_HELP, "there is no setting '%.80s'", name);
}

static int settings_put(json_t *settings, const char *key, json_t *value, struct failure *f)
{
	if (json_object_get(settings, key)) {
		json_decref(value);
		return failure_set(f, CODE_USAGE, SETTINGS_HELP, "'%s' is given twice", key);
	}
	if (json_object_set_new(settings, key, value))
		return failure_set(f, CODE_USAGE, SETTINGS_HELP, "the value of '%s' is not UTF-8",
				   key);
	return CODE_DONE;
}

/* Parse host.MEMBER=HOST[:PORT]. */
static int settings_host(json_t *settings, const char *member, const char *value, struct failure *f)
{
	char text[MIRROR_NAME_MAX + MIRROR_HOST_MAX + 32];
	struct mirror_member m = {0};
	json_t *hosts = json_object_get(settings, "hosts");
	const char *why = "its value is too long";

	if (snprintf(text, sizeof(text), "%s=%s:/", member, value) >= (int)sizeof(text) ||
	    strchr(value, '/') || !place_parse(text, &m, &why))
		return failure_set(f, CODE_USAGE, SETTINGS_HELP, "host.%.40s=%.80s: %s", member,
				   value, why);
	if (!hosts) {
		hosts = json_object();
		json_object_set_new(settings, "hosts", hosts);
	}
	return settings_put(hosts, m.name, json_pack("{s:s, s:i}", "host", m.host, "port", m.port),
			    f);
}

static int settings_value(json_t *settings, const struct settings_row *row, const char *value,
			  struct failure *f)
{
	uint64_t number;

	if (!strcmp(row->name, "blocked") && !strcmp(value, SETTINGS_FOR_EVER))
		return settings_put(settings, row->key, json_integer(UINT32_MAX), f);
	if (row->kind == SETTINGS_TEXT)
		return settings_put(settings, row->key, json_string(value), f);
	if (!args_parse_value(row->kind == SETTINGS_MS ? ARGS_SECONDS : ARGS_COUNT, value,
			      &number) ||
	    number >= UINT32_MAX)
		return failure_set(f, CODE_USAGE, SETTINGS_HELP, "'%.80s' is no value for %s",
				   value, row->name);
	return settings_put(settings, row->key, json_integer((json_int_t)number), f);
}

int settings_parse(const char *text, json_t *settings, struct failure *f)
{
	const char *value = strchr(text, '=');
	char name[64] = "";

	if (!value || value == text || !value[1] || (size_t)(value - text) >= sizeof(name))
		return failure_set(f, CODE_USAGE, SETTINGS_HELP, "'%.80s' is not NAME=VALUE", text);
	memcpy(name, text, (size_t)(value++ - text));
	if (!strncmp(name, "host.", 5))
		return settings_host(settings, name + 5, value, f);
	for (unsigned i = 0; i < sizeof(settings_rows) / sizeof(settings_rows[0]); i++)
		if (!strcmp(settings_rows[i].name, name))
			return settings_value(settings, &settings_rows[i], value, f);
	return settings_refuse(name, f);
}

static int settings_send(const struct args *args, const char *named, json_t *settings)
{
	char set[MIRROR_SET_MAX + 1];
	struct failure f;
	json_t *answer;
	int code = 0;

	if (named && strlen(named) > MIRROR_SET_MAX)
		code = failure_set(&f, CODE_CONFIG, NULL, "there is no set '%s'", named);
	else if (named)
		strcpy(set, named);
	else
		code = ask_only_set(args, set, &f);
	if (!code)
		code = ask_once(args,
				json_pack("{s:s, s:s, s:O}", "op", "settings", "set", set,
					  "settings", settings),
				&answer, &f);
	if (code)
		return out_failure(&f);
	if (args->json) {
		out_json(answer);
	} else {
		printf("the set has its new settings\n");
		json_decref(answer);
	}
	return CODE_DONE;
}

int cmd_set(int argc, char **argv)
{
	const struct args_option options[] = {{0}};
	json_t *settings;
	struct failure f;
	struct args args;
	unsigned first;
	int code;

	if (args_parse(argc, argv, options, 1, ARGS_MAX, &args, &code))
		return code;
	first = strchr(args.rest.items[0], '=') ? 0 : 1;
	if (first == args.rest.count)
		return out_usage("name the settings to change: NAME=VALUE...");
	settings = json_object();
	for (unsigned i = first; i < args.rest.count && !code; i++)
		code = settings_parse(args.rest.items[i], settings, &f);
	if (code)
		out_failure(&f);
	else
		code = settings_send(&args, first ? args.rest.items[0] : NULL, settings);
	json_decref(settings);
	return code;
}
