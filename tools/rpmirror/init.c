/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror init: creates the set's first record, and the copies on this host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rand.h"
#include "commands.h"
#include "copyfile.h"
#include "init.h"
#include "mirror/core/view.h"
#include "survive.h"

static uint64_t init_nonce(void)
{
	uint64_t nonce;

	rand_bytes(&nonce, sizeof(nonce));
	return nonce;
}

static int init_code_of(int rc)
{
	switch (rc) {
	case -EPROTO:
	case -EACCES:
	case -ENOENT:
		return CODE_CONFIG;
	case -ETIMEDOUT:
		return CODE_QUORUM;
	default:
		return CODE_UNREACHABLE;
	}
}

/* ---- the copies ---- */

static void init_remove_copies(struct copyfile_opts *copies, unsigned count)
{
	while (count--)
		copyfile_remove(&copies[count]);
}

static int init_make_copies(struct copyfile_opts *copies, unsigned count)
{
	struct error err;

	for (unsigned i = 0; i < count; i++) {
		if (!copyfile_create(&copies[i], &err))
			continue;
		init_remove_copies(copies, i);
		return out_fail(CODE_IO,
				err.cause == EEXIST
					? "--from MEMBER begins the set with a file that "
					  "exists"
					: NULL,
				"%s", err.text);
	}
	return CODE_DONE;
}

/* With --from only the copy of that file is in-sync, because the others have other content.
 * Otherwise all copies made here are in-sync, because all are zero. */
static int init_plan(const struct init_opts *opts, const struct mirror_config *config,
		     mirror_mask local, mirror_mask *insync)
{
	uint8_t from;

	*insync = local;
	if (!opts->from)
		return CODE_DONE;
	from = mirror_config_find(config, opts->from);
	if (from == MIRROR_NO_SLOT || !(local & MIRROR_BIT(from)))
		return out_usage("--from: '%s' is no member of this host", opts->from);
	*insync = MIRROR_BIT(from);
	return CODE_DONE;
}

static unsigned init_fill_copies(const struct init_opts *opts, const struct mirror_record *record,
				 mirror_mask local, struct copyfile_opts *copies)
{
	unsigned count = 0;

	for (uint8_t slot = 0; slot < MIRROR_MEMBERS_MAX; slot++)
		if (local & MIRROR_BIT(slot))
			copies[count++] = (struct copyfile_opts){
				.record = record,
				.slot = slot,
				.is_empty = !(record->view.insync & MIRROR_BIT(slot)),
				.hot_slots = (uint32_t)opts->hot_extents,
				.keeps_data =
					opts->from &&
					!strcmp(opts->from, record->config.members[slot].name)};
	return count;
}

/* ---- the record ---- */

static int init_absent(struct mirror_register *r, const char *set)
{
	struct register_entry *now = malloc(sizeof(*now));
	struct error err;
	int rc = now ? register_get(r, now, &err) : -ENOMEM;

	free(now);
	if (rc == -ENOENT)
		return CODE_DONE;
	if (!rc)
		return out_fail(CODE_CONFIG, "rpmirror status shows it",
				"set '%s' is in the register already", set);
	if (rc == -ENOMEM)
		return out_fail(CODE_IO, NULL, "out of memory");
	return out_fail((enum code)init_code_of(rc), NULL, "%s", err.text);
}

/* Store the record in the register. If no answer came, the same record may be sent again, because
 * its nonce identifies it in the register. */
static int init_put(struct mirror_register *r, const struct mirror_record *record, bool *maybe)
{
	struct register_entry *now = malloc(sizeof(*now));
	enum register_result result = REGISTER_FAILED;
	struct error err = {.text = "out of memory"};

	for (int attempt = 0; now && attempt < 2; attempt++) {
		result = register_create(r, record, now, &err);
		if (result != REGISTER_UNKNOWN)
			break;
	}
	free(now);
	*maybe = result == REGISTER_UNKNOWN;
	if (result == REGISTER_DONE)
		return CODE_DONE;
	if (result == REGISTER_CHANGED)
		return out_fail(CODE_CONFIG, NULL,
				"set '%s' was put into the register by another program",
				record->config.set);
	return out_fail(
		*maybe ? CODE_QUORUM : CODE_UNREACHABLE,
		*maybe ? "it is not known whether the set was created: check with rpmirror init "
			 "--join, or run this command again once the register answers"
		       : NULL,
		"%s", err.text);
}

static void init_print(const struct args *args, const struct init_opts *opts,
		       const struct mirror_record *record, struct mirror_register *r,
		       mirror_mask made)
{
	struct survive_facts facts = {.copies = view_count(record->view.insync),
				      .min_copies = record->config.min_copies,
				      .lonely = record->config.lonely};
	unsigned waiting = view_count(mirror_config_members(&record->config)) - facts.copies;
	struct register_health health;
	char sentence[256], later[300] = "";

	register_health(r, &health);
	if (strcmp(health.kind, "file") != 0) {
		facts.register_members = health.members;
		facts.register_healthy = health.healthy;
	}
	survive_text(&facts, sentence, sizeof(sentence));
	if (waiting) {
		char then[256];

		facts.copies += waiting;
		survive_text(&facts, then, sizeof(then));
		snprintf(later, sizeof(later), "; once all %u copies are in-sync: %s", facts.copies,
			 then);
	}
	if (args->json) {
		out_json(json_pack("{s:b, s:s, s:s+}", "ok", 1, "set", record->config.set,
				   "survives", sentence, later));
		return;
	}
	printf("set %s: %u in-sync cop%s: %s%s\n", record->config.set,
	       view_count(record->view.insync), view_count(record->view.insync) == 1 ? "y" : "ies",
	       sentence, later);
	init_print_advice(opts, &record->config, made);
}

static int init_create(const struct args *args, const struct init_opts *opts,
		       struct mirror_register *r, struct mirror_record *record)
{
	struct copyfile_opts copies[MIRROR_MEMBERS_MAX];
	struct mirror_config config;
	mirror_mask local, insync;
	bool maybe = false;
	const char *why;
	unsigned count;
	int code = init_config(opts, &config);

	if (!code)
		code = init_local(opts, &config, &local);
	if (!code)
		code = init_plan(opts, &config, local, &insync);
	if (!code)
		code = init_absent(r, opts->set);
	if (!code && view_create(record, &config, insync, init_nonce(), &why))
		code = out_usage("this cannot be a set: %s", why);
	if (code)
		return code;
	count = init_fill_copies(opts, record, local, copies);
	code = init_make_copies(copies, count);
	if (code)
		return code;
	code = init_put(r, record, &maybe);
	if (code && !maybe)
		init_remove_copies(copies, count);
	if (!code)
		init_print(args, opts, record, r, local);
	return code;
}

/* Create a copy on this host for an existing set. The copy is empty, and the primary resyncs it. */
static int init_join(const struct args *args, const struct init_opts *opts,
		     struct mirror_register *r, struct mirror_record *record)
{
	struct register_entry *now = malloc(sizeof(*now));
	struct copyfile_opts copy = {
		.record = record, .is_empty = true, .hot_slots = (uint32_t)opts->hot_extents};
	struct error err = {.text = "out of memory"};
	int rc = now ? register_get(r, now, &err) : -ENOMEM;

	if (!rc)
		*record = now->record;
	free(now);
	if (rc)
		return out_fail((enum code)init_code_of(rc), NULL, "%s", err.text);
	copy.slot = mirror_config_find(&record->config, opts->join);
	if (copy.slot == MIRROR_NO_SLOT)
		return out_fail(CODE_CONFIG, "rpmirror member add", "set '%s' has no member '%s'",
				opts->set, opts->join);
	if (record->view.insync & MIRROR_BIT(copy.slot))
		return out_fail(CODE_CONFIG, "rpmirror member replace, if its copy is lost",
				"the copy of '%s' counts as in-sync, so no new copy can replace it",
				opts->join);
	if (copyfile_create(&copy, &err))
		return out_fail(CODE_IO, NULL, "%s", err.text);
	if (args->json)
		out_json(json_pack("{s:b, s:s, s:s}", "ok", 1, "set", opts->set, "member",
				   opts->join));
	else
		printf("set %s: the copy of %s is made and empty; it is made equal when its daemon "
		       "is connected to the primary\n",
		       opts->set, opts->join);
	return CODE_DONE;
}

static int init_run(const struct args *args, const struct init_opts *opts)
{
	struct mirror_record *record = calloc(1, sizeof(*record));
	struct mirror_register *r;
	struct error err;
	int code;

	if (!record)
		return out_fail(CODE_IO, NULL, "out of memory");
	if (register_open(opts->uri, opts->set, (unsigned)args->timeout_ms, &r, &err)) {
		free(record);
		return out_fail(err.kind == ERROR_ARGUMENT ? CODE_USAGE : CODE_IO, NULL, "%s",
				err.text);
	}
	code = opts->join ? init_join(args, opts, r, record) : init_create(args, opts, r, record);
	register_close(r);
	free(record);
	return code;
}

int cmd_init(int argc, char **argv)
{
	struct init_opts opts = {0};
	const struct args_option options[] = {
		{"size", ARGS_SIZE, &opts.size},
		{"member", ARGS_LIST, &opts.members},
		{"register", ARGS_TEXT, &opts.uri},
		{"lonely", ARGS_TEXT, &opts.lonely},
		{"min-copies", ARGS_COUNT, &opts.min_copies},
		{"lease", ARGS_SECONDS, &opts.lease_ms},
		{"replica-timeout", ARGS_SECONDS, &opts.replica_timeout_ms},
		{"slow", ARGS_SECONDS, &opts.slow_ms},
		{"holdoff", ARGS_SECONDS, &opts.holdoff_ms},
		{"blocked", ARGS_SECONDS, &opts.blocked_ms},
		{"blocked-for-ever", ARGS_FLAG, &opts.blocked_for_ever},
		{"local-error", ARGS_TEXT, &opts.local_error},
		{"address", ARGS_TEXT, &opts.address},
		{"hot-extents", ARGS_COUNT, &opts.hot_extents},
		{"secret", ARGS_TEXT, &opts.secret},
		{"here", ARGS_LIST, &opts.here},
		{"from", ARGS_TEXT, &opts.from},
		{"join", ARGS_TEXT, &opts.join},
		{0}};
	struct args args;
	int code;

	if (args_parse(argc, argv, options, 1, 1, &args, &code))
		return code;
	opts.set = args.rest.items[0];
	if (!opts.uri)
		return out_usage("name the register that holds the set's record: --register "
				 "etcd://HOST:2379,... or file:PATH");
	if (opts.hot_extents > META_HOT_SLOTS)
		return out_usage("--hot-extents: at most %u", META_HOT_SLOTS);
	if (opts.join && opts.members.count)
		return out_usage(
			"--join makes a copy for a set that exists; --member is for a new set");
	if (opts.secret && access(opts.secret, R_OK))
		return out_fail(CODE_IO, NULL, "cannot read the secret %s: %s", opts.secret,
				strerror(errno));
	return init_run(&args, &opts);
}
