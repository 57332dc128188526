/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma get: a remote region into a local file, or into a pipe. */
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"
#include "commands.h"
#include "copy.h"
#include "output.h"

struct get {
	struct copy c;
	struct output out;
	bool verifies; /* the digest of what comes is known */
	crypto_generichash_state state;
};

/* The file that was put there, as long as it is. False: there is none to speak of. */
static bool get_choose_file(struct get *g, int *rc)
{
	const struct hello_reply *region = &g->c.s.region;
	const struct hello_content *content = &region->content;

	*rc = CLI_OK;
	if (g->c.opts->is_raw || content->state == HELLO_CONTENT_RAW)
		return false;
	if (content->state == HELLO_CONTENT_PARTIAL)
		*rc = cli_fail(CLI_REFUSED,
			       "region '%s' of %s holds a file that is not whole: it is being put, "
			       "or its put failed; put it again, or with --resume, or get what is "
			       "there with --offset 0",
			       region->region, g->c.s.server);
	else if (content->length > region->size)
		*rc = cli_fail(CLI_REFUSED, "%s describes a file that is longer than region '%s'",
			       g->c.s.server, region->region);
	g->c.total = content->length;
	return true;
}

static int get_choose_length(struct get *g)
{
	const struct copy_opts *opts = g->c.opts;
	const struct hello_reply *region = &g->c.s.region;
	int rc;

	g->verifies = get_choose_file(g, &rc);
	if (g->verifies)
		return rc;
	if (opts->offset > region->size)
		return cli_fail(CLI_REFUSED, "offset %" PRIu64 " is outside region '%s' of %s",
				opts->offset, region->region, text_bytes(region->size).text);
	g->c.total = region->size - opts->offset;
	if (opts->length == UINT64_MAX)
		return CLI_OK;
	if (opts->length > g->c.total)
		return cli_fail(CLI_REFUSED,
				"%" PRIu64 " bytes from offset %" PRIu64
				" reach past the end of region '%s' of %s",
				opts->length, opts->offset, region->region,
				text_bytes(region->size).text);
	g->c.total = opts->length;
	return CLI_OK;
}

static int get_post_read(struct get *g)
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

static int get_finish_one(struct get *g)
{
	struct copy_op op;
	uint32_t buffer = 0;
	int rc = copy_finish_oldest(&g->c, &op, &buffer);

	if (rc)
		return rc;
	/* Completions come in the order of posting, hence of the bytes. */
	if (g->verifies)
		crypto_generichash_update(&g->state, g->c.staging + buffer, op.len);
	return output_write(&g->out, g->c.staging + buffer, op.len);
}

static int get_run(struct get *g)
{
	int rc = CLI_OK;

	crypto_generichash_init(&g->state, NULL, 0, HELLO_DIGEST);
	progress_begin(&g->c.progress, "get", g->c.total);
	while (!rc && g->c.done < g->c.total)
		rc = copy_has_room(&g->c) ? get_post_read(g) : get_finish_one(g);
	progress_end(&g->c.progress);
	return rc;
}

static int get_verify(struct get *g)
{
	const struct hello_reply *region = &g->c.s.region;
	uint8_t digest[HELLO_DIGEST];

	if (!g->verifies)
		return CLI_OK;
	crypto_generichash_final(&g->state, digest, sizeof(digest));
	if (!memcmp(digest, region->content.digest, sizeof(digest)))
		return CLI_OK;
	return cli_fail(CLI_TRANSFER,
			"verification failed: what region '%s' of %s holds is not the file that "
			"was put there; another program wrote there, or its medium is broken; "
			"--offset 0 gets it as it is",
			region->region, g->c.s.server);
}

static int get_file(struct get *g)
{
	int rc = get_choose_length(g);

	if (!rc && sodium_init() < 0)
		rc = cli_fail(CLI_FILE, "libsodium cannot be used on this machine");
	if (rc)
		return rc;
	rc = output_begin(&g->out, g->c.total);
	if (!rc)
		rc = get_run(g);
	if (!rc)
		rc = get_verify(g);
	return rc ? rc : output_commit(&g->out);
}

static void get_summarise(const struct get *g)
{
	static const char *const texts[2][2] = {
		{", verified: no (bytes, no file)", ", verified: blake2b"},
		{",\"verified\":false", ",\"verified\":true,\"digest\":\"blake2b\""},
	};

	copy_summary(&g->c, "get", texts[g->c.opts->json][g->verifies]);
}

static int get_from_server(struct get *g, const struct copy_opts *opts)
{
	int rc = copy_open(&g->c, opts);

	if (rc)
		return rc;
	rc = get_file(g);
	if (!rc)
		get_summarise(g);
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
