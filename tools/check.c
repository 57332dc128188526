/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cli.h"

static enum check_outcome check_choose(const struct copy *c)
{
	if (c->opts->no_verify)
		return CHECK_UNWANTED;
	if (!c->info.persists)
		return CHECK_VOLATILE;
	return c->info.verifies ? CHECK_DONE : CHECK_UNABLE;
}

static void check_begin_piece(struct check *check)
{
	crypto_generichash_init(&check->state, NULL, 0, CHECK_DIGEST);
}

int check_init(struct check *check, struct copy *c)
{
	*check = (struct check){.c = c, .outcome = check_choose(c), .source = RPMA_DIGEST_FROM_DAX};
	if (sodium_init() < 0)
		return cli_fail(CLI_FILE, "libsodium cannot be used on this machine");
	crypto_generichash_init(&check->whole, NULL, 0, CHECK_DIGEST);
	if (check->outcome != CHECK_DONE)
		return CLI_OK;
	check->pieces = calloc(c->total / CHECK_PIECE + 1, sizeof(*check->pieces));
	if (!check->pieces)
		return cli_fail(CLI_TRANSFER, "out of memory for the digests");
	check_begin_piece(check);
	return CLI_OK;
}

static void check_end_piece(struct check *check)
{
	crypto_generichash_final(&check->state, check->pieces[check->count++], CHECK_DIGEST);
	check_begin_piece(check);
}

void check_fini(struct check *check)
{
	free(check->pieces);
	check->pieces = NULL;
}

void check_whole(struct check *check, uint8_t digest[CHECK_DIGEST])
{
	crypto_generichash_final(&check->whole, digest, CHECK_DIGEST);
}

void check_feed(struct check *check, const uint8_t *data, uint32_t len)
{
	/* Raw bytes need no digest of the whole, because the server cannot store one for them. */
	if (!check->c->opts->is_raw)
		crypto_generichash_update(&check->whole, data, len);
	while (check->outcome == CHECK_DONE && len > 0) {
		uint32_t room = CHECK_PIECE - (uint32_t)(check->fed % CHECK_PIECE);
		uint32_t part = len < room ? len : room;

		crypto_generichash_update(&check->state, data, part);
		check->fed += part;
		data += part;
		len -= part;
		if (check->fed % CHECK_PIECE == 0)
			check_end_piece(check);
	}
}

static uint64_t check_piece_len(const struct check *check, uint64_t index)
{
	uint64_t left = check->c->total - index * CHECK_PIECE;

	return left < CHECK_PIECE ? left : CHECK_PIECE;
}

int check_range(struct check *check, uint64_t at, uint32_t len, const uint8_t digest[CHECK_DIGEST],
		bool *same)
{
	struct copy *c = check->c;
	struct rpma_digest there, here = {.alg = RPMA_DIGEST_BLAKE2B, .len = len};
	int rc = copy_check(c, rpma_file_digest(c->file, &there, len, c->opts->offset + at));

	if (rc)
		return rc;
	if (there.source < check->source)
		check->source = there.source;
	memcpy(here.bytes, digest, CHECK_DIGEST);
	*same = rpma_digest_equal(&there, &here);
	return CLI_OK;
}

/* Check one piece at a time: the server's direct reads of a single piece already keep its disk
 * busy. */
static int check_piece(struct check *check, uint64_t index)
{
	struct copy *c = check->c;
	uint64_t at = index * CHECK_PIECE, len = check_piece_len(check, index);
	bool same = false;
	int rc = check_range(check, at, (uint32_t)len, check->pieces[index], &same);

	if (rc || same)
		return rc;
	cli_set_tail("%s", "");
	return cli_fail(CLI_TRANSFER,
			"verification failed: the bytes from %" PRIu64 " to %" PRIu64
			" of region '%s' of %s are not those that were sent; "
			"its medium is broken, or another program wrote there",
			c->opts->offset + at, c->opts->offset + at + len, c->info.region,
			c->info.server);
}

int check_run(struct check *check)
{
	int rc = CLI_OK;

	if (check->fed % CHECK_PIECE)
		check_end_piece(check);
	progress_begin(&check->progress, "verify", check->c->total);
	for (uint64_t i = check->skipped; i < check->count && !rc; i++) {
		rc = check_piece(check, i);
		progress_show(&check->progress, i * CHECK_PIECE + check_piece_len(check, i));
	}
	progress_end(&check->progress);
	return rc;
}

static const char *check_source_name(enum rpma_digest_source source, bool json)
{
	switch (source) {
	case RPMA_DIGEST_FROM_MEDIUM:
		return json ? "medium" : "the medium";
	case RPMA_DIGEST_FROM_DAX:
		return json ? "dax" : "persistent memory";
	case RPMA_DIGEST_FROM_CACHE:
		return json ? "cache" : "the page cache, after a flush";
	default:
		return json ? "memory" : "memory";
	}
}

void check_describe(const struct check *check, bool json, char *text, size_t size)
{
	double seconds = progress_seconds(&check->progress);
	static const char *const reasons[] = {
		[CHECK_DONE] = "nothing was sent",
		[CHECK_UNWANTED] = "--no-verify",
		[CHECK_UNABLE] = "the server cannot verify",
		[CHECK_VOLATILE] = "volatile memory",
	};

	if (check->count)
		snprintf(
			text, size,
			json ? ",\"verified\":true,\"digest\":\"blake2b\",\"read_back_from\":\"%s\","
			       "\"verify_seconds\":%.6f,\"verify_mib_per_s\":%.1f"
			     : ", verified: blake2b, read back from %s in %.3f s, %.1f MiB/s",
			check_source_name(check->source, json), seconds,
			(double)(check->c->total - check->skipped * CHECK_PIECE) / seconds /
				(1 << 20));
	else if (json)
		snprintf(text, size, ",\"verified\":false");
	else
		snprintf(text, size, ", verified: no (%s)", reasons[check->outcome]);
}
