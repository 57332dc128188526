/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes a set's configuration from the options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rand.h"
#include "init.h"
#include "mirror/core/version.h"
#include "mirror/core/view.h"
#include "mirror/core/words.h"
#include "mirror/register/value.h"
#include "place.h"

#define INIT_LEASE_MS           5000
#define INIT_REPLICA_TIMEOUT_MS 2000
#define INIT_SLOW_MS            20
#define INIT_HOLDOFF_MS         5000
#define INIT_BLOCKED_MS         30000

static int init_members(const struct init_opts *opts, struct mirror_config *config)
{
	for (unsigned slot = 0; slot < opts->members.count; slot++) {
		struct mirror_member *m = &config->members[slot];
		const char *text = opts->members.items[slot], *why;

		if (!place_parse(text, m, &why))
			return out_usage("--member %s: %s", text, why);
		if (mirror_config_find(config, m->name) != MIRROR_NO_SLOT)
			return out_usage("there are two members '%s'", m->name);
		do {
			rand_bytes(&m->id, sizeof(m->id));
		} while (!m->id);
	}
	return CODE_DONE;
}

/* A set whose register is a file has no automatic failover, so the operator must choose what the
 * primary does when its copy is the only copy left. */
static int init_lonely(const struct init_opts *opts, struct mirror_config *config)
{
	bool is_file = !strncmp(opts->uri, "file:", 5);
	int lonely = opts->lonely ? words_find(words_lonely, opts->lonely) : -1;

	if (!is_file && opts->lonely)
		return out_usage(
			"--lonely is only for registers in files; with etcd the register decides");
	if (!is_file)
		return CODE_DONE;
	if (lonely > MIRROR_LONELY_NONE) {
		config->lonely = (enum mirror_lonely)lonely;
		return CODE_DONE;
	}
	return out_usage(
		"a register in a file cannot decide for a primary that lost its other copies: "
		"choose --lonely=block (flushes wait for these copies) or --lonely=manual (it goes "
		"on alone; another copy can then be promoted only by force)");
}

static int init_local_error(const struct init_opts *opts, struct mirror_config *config)
{
	const char *what = opts->local_error ? opts->local_error : "stop";

	config->local_error_continues = !strcmp(what, "continue");
	if (config->local_error_continues || !strcmp(what, "stop"))
		return CODE_DONE;
	return out_usage("--local-error must be stop or continue, and not '%.80s'", what);
}

static int init_address(const struct init_opts *opts, struct mirror_config *config)
{
	char *end = NULL;

	if (!opts->address)
		return CODE_DONE;
	config->address = strtoull(opts->address, &end, 16);
	if (!*end && config->address && !(config->address % MIRROR_BLOCK))
		return CODE_DONE;
	return out_usage("--address must be a hexadecimal multiple of 0x1000, and not '%.80s'",
			 opts->address);
}

static int init_check(const struct init_opts *opts, const struct mirror_config *config)
{
	const char *why;

	if (!value_is_name(opts->set, MIRROR_SET_MAX))
		return out_usage(
			"'%.80s' is no name of a set: letters, digits and ._- , at most %d",
			opts->set, MIRROR_SET_MAX);
	if (!view_config_is_valid(config, &why))
		return out_usage("this cannot be a set: %s", why);
	return CODE_DONE;
}

static uint64_t init_or(uint64_t value, uint64_t dflt)
{
	return value ? value : dflt;
}

int init_config(const struct init_opts *opts, struct mirror_config *config)
{
	unsigned count = opts->members.count;
	int code;

	memset(config, 0, sizeof(*config));
	if (!count || count > MIRROR_MEMBERS_MAX)
		return out_usage("a set has 1 to %d members: --member NAME=HOST:PATH",
				 MIRROR_MEMBERS_MAX);
	if (!opts->size)
		return out_usage("state the size of the file: --size 8G");
	rand_bytes(&config->uuid, sizeof(config->uuid));
	snprintf(config->set, sizeof(config->set), "%s", opts->set);
	config->number = 1;
	/* the lowest format, so that hosts with the previous release may join */
	config->format = version_ours().lowest;
	config->size = opts->size;
	config->min_copies = (uint32_t)init_or(opts->min_copies, count > 2 ? 2 : 1);
	config->lease_ms = (uint32_t)init_or(opts->lease_ms, INIT_LEASE_MS);
	config->replica_timeout_ms =
		(uint32_t)init_or(opts->replica_timeout_ms, INIT_REPLICA_TIMEOUT_MS);
	config->slow_ms = (uint32_t)init_or(opts->slow_ms, INIT_SLOW_MS);
	config->holdoff_ms = (uint32_t)init_or(opts->holdoff_ms, INIT_HOLDOFF_MS);
	config->blocked_ms = opts->blocked_for_ever
				     ? UINT32_MAX
				     : (uint32_t)init_or(opts->blocked_ms, INIT_BLOCKED_MS);
	code = init_local_error(opts, config);
	if (!code)
		code = init_address(opts, config);
	if (!code)
		code = init_members(opts, config);
	if (!code)
		code = init_lonely(opts, config);
	return code ? code : init_check(opts, config);
}

int init_local(const struct init_opts *opts, const struct mirror_config *config, mirror_mask *local)
{
	*local = 0;
	for (unsigned i = 0; i < opts->here.count; i++) {
		uint8_t slot = mirror_config_find(config, opts->here.items[i]);

		if (slot == MIRROR_NO_SLOT)
			return out_usage("--here: there is no member '%s'", opts->here.items[i]);
		*local |= MIRROR_BIT(slot);
	}
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX && !opts->here.count; slot++)
		if (config->members[slot].id && place_is_here(config->members[slot].host))
			*local |= MIRROR_BIT(slot);
	if (*local)
		return CODE_DONE;
	return out_usage(
		"no member's host is this machine, but a set begins with a copy that is made here: "
		"run this command on one of the hosts, or name this host's member with --here");
}

void init_print_advice(const struct init_opts *opts, const struct mirror_config *config,
		       mirror_mask made)
{
	for (unsigned slot = 0; slot < MIRROR_MEMBERS_MAX; slot++) {
		const struct mirror_member *m = &config->members[slot];

		if (!m->id)
			continue;
		if (!(made & MIRROR_BIT(slot)))
			printf("\nOn %s make its copy: rpmirror init %s --join %s --register '%s'\n",
			       m->host, config->set, m->name, opts->uri);
		printf("\n# /etc/rpmirror/rpmirrord.conf on %s\n[set %s]\nmember = %s\ndata = %s\n"
		       "register = %s\n",
		       m->host, config->set, m->name, m->path, opts->uri);
		if (opts->secret)
			printf("secret-file = %s\n", opts->secret);
		/* The set survives a loss without an operator only if promotion is automatic. */
		if (strncmp(opts->uri, "file:", 5) != 0)
			printf("auto = yes\n");
	}
}
