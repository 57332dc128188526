/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma get: a remote region into a local file. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "copy.h"
#include "newfile.h"

struct get {
	struct copy c;
	struct newfile out;
};

/* Before the transfer, not after: what is there must be something a file may replace. */
static int check_target(const char *path)
{
	struct stat st;

	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return cli_fail(CLI_FILE, "%s exists and is not a regular file", path);
	return CLI_OK;
}

static int choose_length(struct get *g)
{
	const struct copy_opts *opts = g->c.opts;
	const struct hello_reply *region = &g->c.s.region;

	if (opts->offset > region->size)
		return cli_fail(CLI_REFUSED, "offset %" PRIu64 " is outside region '%s' of %s",
				opts->offset, region->region, cli_show_size(region->size).text);
	g->c.total = region->size - opts->offset;
	if (opts->length == UINT64_MAX)
		return CLI_OK;
	if (opts->length > g->c.total)
		return cli_fail(CLI_REFUSED,
				"%" PRIu64 " bytes from offset %" PRIu64
				" reach past the end of region '%s' of %s",
				opts->length, opts->offset, region->region,
				cli_show_size(region->size).text);
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
		return session_post_failed(&g->c.s, "read from", rc);
	copy_posted(&g->c, &op);
	return CLI_OK;
}

static int write_out(struct get *g, const uint8_t *src, const struct copy_op *op)
{
	uint32_t put = 0;

	while (put < op->len) {
		ssize_t n = pwrite(g->out.fd, src + put, op->len - put, (off_t)(op->at + put));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cli_fail(CLI_FILE, "cannot write %s: %s", g->out.path,
					strerror(errno));
		put += (uint32_t)n;
	}
	return CLI_OK;
}

static int finish_one(struct get *g)
{
	struct copy_op op;
	uint32_t buffer = 0;
	int rc = copy_finish_oldest(&g->c, &op, &buffer);

	return rc ? rc : write_out(g, g->c.staging + buffer, &op);
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
	rc = newfile_open(&g->out, g->c.opts->file, g->c.total);
	if (rc)
		return rc;
	rc = run(g);
	if (!rc)
		rc = newfile_commit(&g->out, true);
	newfile_abort(&g->out);
	return rc;
}

int cmd_get(int argc, char **argv)
{
	struct copy_opts opts;
	struct get get;
	int rc = copy_parse(argc, argv, false, &opts);

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	rc = check_target(opts.file);
	if (!rc)
		rc = copy_open(&get.c, &opts);
	if (rc)
		return rc;
	rc = get_file(&get);
	if (!rc)
		copy_summary(&get.c, "get", "");
	copy_close(&get.c);
	return rc;
}
