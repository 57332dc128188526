/* SPDX-License-Identifier: BSD-3-Clause */
/* rpmirror meta: prints (dump) or checks the metadata of a copy, without a daemon. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "commands.h"
#include "copyfile.h"
#include "mirror/core/meta_dump.h"
#include "out.h"

static int meta_open(const char *path, struct copyfile *f)
{
	struct error err;

	if (!copyfile_open(f, path, &err))
		return CODE_DONE;
	return out_fail(err.cause == ENODATA || err.cause == EPROTONOSUPPORT ? CODE_CONFIG
									     : CODE_IO,
			NULL, "%s", err.text);
}

struct meta_findings {
	bool json;
	json_t *defects, *notes; /* lists for the JSON output */
};

static void meta_say(void *arg, enum meta_finding finding, const char *text)
{
	struct meta_findings *findings = arg;

	if (findings->json)
		json_array_append_new(finding == META_DEFECT ? findings->defects : findings->notes,
				      json_string(text));
	else
		printf("%s: %s\n", finding == META_DEFECT ? "defect" : "note", text);
}

static int meta_cmd_check(const struct args *args, const struct copyfile *f)
{
	struct meta_findings findings = {args->json, args->json ? json_array() : NULL,
					 args->json ? json_array() : NULL};
	const struct meta_super *super = &f->meta.super;
	unsigned defects = meta_check(&f->meta, f->data_size, meta_say, &findings);

	if (!f->has_data) {
		meta_say(&findings, META_DEFECT, "there is no data file beside the metadata");
		defects++;
	}
	if (args->json)
		out_json(json_pack("{s:b, s:o, s:o}", "ok", !defects, "defects", findings.defects,
				   "notes", findings.notes));
	else if (defects)
		out_fail(CODE_IO,
			 "rpmirrord does not trust such a copy until all of it was compared with "
			 "another copy; 'rpmirror explain' shows the progress",
			 "%u defects in the copy of set %s in slot %u", defects, super->set,
			 super->slot);
	else
		printf("the metadata of set %s, slot %u, are whole\n", super->set, super->slot);
	return defects ? CODE_IO : CODE_DONE;
}

int cmd_meta(int argc, char **argv)
{
	const struct args_option options[] = {{0}};
	struct copyfile f;
	struct args args;
	bool dump;
	int code;

	if (args_parse(argc, argv, options, 2, 2, &args, &code))
		return code;
	dump = !strcmp(args.rest.items[0], "dump");
	if (!dump && strcmp(args.rest.items[0], "check") != 0)
		return out_usage("'%s' is neither dump nor check", args.rest.items[0]);
	code = meta_open(args.rest.items[1], &f);
	if (code)
		return code;
	if (dump)
		meta_dump(&f.meta, args.json ? META_FORM_JSON : META_FORM_TEXT, stdout);
	else
		code = meta_cmd_check(&args, &f);
	copyfile_close(&f);
	return code;
}
