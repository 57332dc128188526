/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma get: a remote region into a local file, or into a pipe. */
#include <inttypes.h>

#include "base/text.h"
#include "cli.h"
#include "commands.h"
#include "copy.h"
#include "output.h"

struct get {
	struct copy c;
	struct output out;
};

static int choose_length(struct get *g)
{
	const struct copy_opts *opts = g->c.opts;
	const struct hello_reply *region = &g->c.s.region;

	if (opts->offset > region->size)
		return cli_fail(CLI_REFUSED, "offset %" PRIu64 " is outside region '%s' of %s",
				opts->offset, region->region, text_size(region->size).text);
	g->c.total = region->size - opts->offset;
	if (opts->length == UINT64_MAX)
		return CLI_OK;
	if (opts->length > g->c.total)
		return cli_fail(CLI_REFUSED,
				"%" PRIu64 " bytes from offset %" PRIu64
				" reach past the end of region '%s' of %s",
				opts->length, opts->offset, region->region,
				text_size(region->size).text);
	g->c.total = opts->length;
	return CLI_OK;
}

static int post_read(struct get *g)
{
	struct copy_op op;
	uint32_t buffer = copy_next(&g->c, &op);
	int rc = rpma_read(g->c.s.conn, g->c.mr, buffer, g->c.s.remote, g->c.opts->offset + op.at,
			   op.len, RPMA_F_COMPLETION_ALWAYS, NULL);

	if (rc)
		return client_post_failed(&g->c.s, "read from", rc);
	copy_posted(&g->c, &op);
	return CLI_OK;
}

static int finish_one(struct get *g)
{
	struct copy_op op;
	uint32_t buffer = 0;
	int rc = copy_finish_oldest(&g->c, &op, &buffer);

	/* Completions come in the order of posting, hence of the bytes. */
	return rc ? rc : output_write(&g->out, g->c.staging + buffer, op.len);
}

static int run(struct get *g)
{
	int rc = CLI_OK;

	progress_begin(&g->c.progress, "get", g->c.total);
	while (!rc && g->c.done < g->c.total)
		rc = copy_has_room(&g->c) ? post_read(g) : finish_one(g);
	progress_end(&g->c.progress);
	return rc;
}

static int get_file(struct get *g)
{
	int rc = choose_length(g);

	if (rc)
		return rc;
	rc = output_begin(&g->out, g->c.total);
	if (!rc)
		rc = run(g);
	return rc ? rc : output_commit(&g->out);
}

static int get_from_server(struct get *g, const struct copy_opts *opts)
{
	int rc = copy_open(&g->c, opts);

	if (rc)
		return rc;
	rc = get_file(g);
	if (!rc)
		copy_summary(&g->c, "get", "");
	copy_close(&g->c);
	return rc;
}

int cmd_get(int argc, char **argv)
{
	struct copy_opts opts;
	struct get get;
	int rc = copy_parse(argc, argv, false, &opts);

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	rc = output_open(&get.out, opts.file);
	if (!rc)
		rc = get_from_server(&get, &opts);
	output_close(&get.out);
	return rc;
}
