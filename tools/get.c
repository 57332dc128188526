/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma get: copies a remote region into a local file, or into a pipe. */
#include <inttypes.h>
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"
#include "commands.h"
#include "copy.h"
#include "output.h"

/* Number of outstanding reads, and bytes of a read. Each read registers its chunk, so large chunks
 * cost less; more reads gain nothing on loopback. */
#define GET_DEPTH 4
#define GET_CHUNK (512u << 10)

struct get {
	struct copy c;
	struct output out;
	bool verifies;               /* the digest of the file is known */
	uint64_t started, ended;     /* number of reads begun and ended; each reads one chunk */
	uint64_t tickets[GET_DEPTH]; /* tickets of the outstanding reads */
	crypto_generichash_state state;
};

/* Use the length of the file in the region. Returns false if the region holds no file. */
static bool get_choose_file(struct get *g, int *rc)
{
	const struct rpma_file_info *info = &g->c.info;

	*rc = CLI_OK;
	if (g->c.opts->is_raw || info->holds == RPMA_FILE_HOLDS_BYTES)
		return false;
	if (info->holds == RPMA_FILE_HOLDS_PARTIAL)
		*rc = cli_fail(
			CLI_REFUSED,
			"region '%s' of %s holds a file that is not whole: its put still runs, or "
			"has failed; put the file again (--resume continues a failed put), or get "
			"the bytes as they are with --offset 0",
			info->region, info->server);
	else if (info->file_length > info->length)
		*rc = cli_fail(CLI_REFUSED, "%s describes a file that is longer than region '%s'",
			       info->server, info->region);
	g->c.total = info->file_length;
	return true;
}

static int get_choose_length(struct get *g)
{
	const struct copy_opts *opts = g->c.opts;
	const struct rpma_file_info *info = &g->c.info;
	int rc;

	g->verifies = get_choose_file(g, &rc);
	if (g->verifies)
		return rc;
	rc = copy_check_offset(&g->c);
	g->c.total = info->length - opts->offset;
	if (rc || opts->length == UINT64_MAX)
		return rc;
	if (opts->length > g->c.total)
		return cli_fail(CLI_REFUSED,
				"%" PRIu64 " bytes from offset %" PRIu64
				" reach past the end of region '%s' of %s",
				opts->length, opts->offset, info->region,
				text_bytes(info->length).text);
	g->c.total = opts->length;
	return CLI_OK;
}

static uint8_t *get_chunk(const struct get *g, uint64_t index, size_t *len)
{
	uint64_t left = g->c.total - index * GET_CHUNK;

	*len = left < GET_CHUNK ? left : GET_CHUNK;
	return g->c.staging + index % GET_DEPTH * GET_CHUNK;
}

static int get_start_one(struct get *g)
{
	uint64_t index = g->started++;
	size_t len;
	uint8_t *chunk = get_chunk(g, index, &len);

	return copy_check(&g->c, rpma_file_pread_start(g->c.file, chunk, len,
						       g->c.opts->offset + index * GET_CHUNK,
						       &g->tickets[index % GET_DEPTH]));
}

/* Reads end in the order in which they began, so the bytes are written in order. */
static int get_end_one(struct get *g)
{
	uint64_t index = g->ended++;
	size_t len;
	uint8_t *chunk = get_chunk(g, index, &len);
	int rc = copy_check(&g->c,
			    rpma_file_sync_wait(g->c.file, g->tickets[index % GET_DEPTH], -1));

	if (rc)
		return rc;
	g->c.done += len;
	progress_show(&g->c.progress, g->c.done);
	if (g->verifies)
		crypto_generichash_update(&g->state, chunk, len);
	return output_write(&g->out, chunk, len);
}

static int get_run(struct get *g)
{
	uint64_t chunks = (g->c.total + GET_CHUNK - 1) / GET_CHUNK;
	int rc = CLI_OK;

	crypto_generichash_init(&g->state, NULL, 0, sizeof(g->c.info.file_digest));
	progress_begin(&g->c.progress, "get", g->c.total);
	while (!rc && g->ended < chunks)
		rc = g->started < chunks && g->started - g->ended < GET_DEPTH ? get_start_one(g)
									      : get_end_one(g);
	progress_end(&g->c.progress);
	return rc;
}

static int get_verify(struct get *g)
{
	const struct rpma_file_info *info = &g->c.info;
	uint8_t digest[sizeof(info->file_digest)];

	if (!g->verifies)
		return CLI_OK;
	crypto_generichash_final(&g->state, digest, sizeof(digest));
	if (!memcmp(digest, info->file_digest, sizeof(digest)))
		return CLI_OK;
	return cli_fail(
		CLI_TRANSFER,
		"verification failed: region '%s' of %s does not hold the file that was put there; "
		"another program wrote there, or the server's medium is broken; --offset 0 gets "
		"the bytes as they are",
		info->region, info->server);
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

/* Returns the result of the comparison: true or false in JSON, otherwise a text with the reason. */
static const char *get_verdict(const struct get *g)
{
	if (g->c.opts->remote.json)
		return g->verifies ? ",\"verified\":true,\"digest\":\"blake2b\""
				   : ",\"verified\":false";
	if (g->verifies)
		return ", verified: blake2b";
	return g->c.opts->is_raw ? ", verified: no (--offset and --length read bytes as they are)"
				 : ", verified: no (the region does not hold a file as rpma put "
				   "left it, so there is no digest to compare with)";
}

static int get_from_server(struct get *g, const struct copy_opts *opts)
{
	int rc = copy_open(&g->c, opts, RPMA_FILE_READONLY, (size_t)GET_DEPTH * GET_CHUNK);

	if (rc)
		return rc;
	rc = get_file(g);
	if (!rc)
		copy_summary(&g->c, "get", get_verdict(g));
	copy_close(&g->c);
	return rc;
}

int cmd_get(int argc, char **argv)
{
	struct copy_opts opts;
	struct get get = {0};
	int rc = copy_parse(argc, argv, false, &opts);

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	rc = output_open(&get.out, opts.file);
	if (!rc)
		rc = get_from_server(&get, &opts);
	output_close(&get.out);
	return rc;
}
