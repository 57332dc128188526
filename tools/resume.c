/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "cli.h"
#include "resume.h"

/* Number of bytes in one comparison inside a piece that differs. */
#define RESUME_STEP (1u << 20)

static int resume_refuse(const struct rpma_file_info *there, const char *why)
{
	return cli_fail(CLI_REFUSED, "nothing to resume in region '%s' of %s: %s", there->region,
			there->server, why);
}

int resume_check(const struct check *check, const struct source *src)
{
	const struct rpma_file_info *there = &check->c->info;

	if (!src->is_sized)
		return resume_refuse(there,
				     "standard input and pipes cannot be read from an offset on");
	if (check->outcome != CHECK_DONE)
		return resume_refuse(there, "the server cannot read its bytes back");
	if (there->holds == RPMA_FILE_HOLDS_BYTES)
		return resume_refuse(there, "no put of a file has failed there");
	if (there->holds == RPMA_FILE_HOLDS_WHOLE)
		return resume_refuse(there, "it holds a whole file");
	if (there->file_length == src->size && there->file_time_ns == src->time_ns)
		return CLI_OK;
	return resume_refuse(there,
			     there->file_length == src->size
				     ? "the put that failed was of another file, or the file was "
				       "modified since: the times differ"
				     : "the put that failed was of another file, or the file was "
				       "modified since: the lengths differ");
}

/* Set *same if the medium already holds the next len bytes. */
static int resume_compare(struct check *check, uint64_t at, const uint8_t *data, uint32_t len,
			  bool *same)
{
	uint8_t digest[CHECK_DIGEST];

	crypto_generichash(digest, sizeof(digest), data, len, NULL, 0);
	return check_range(check, at, len, digest, same);
}

static void resume_advance(struct check *check, const uint8_t *data, uint32_t len)
{
	struct copy *c = check->c;

	check_feed(check, data, len);
	c->from += len;
	progress_show(&c->progress, c->from);
}

static int resume_find_in_piece(struct check *check, const uint8_t *data, uint32_t len)
{
	struct copy *c = check->c;
	bool same = true;
	int rc = CLI_OK;

	for (uint32_t at = 0; at < len && same && !rc; at += RESUME_STEP) {
		uint32_t step = len - at < RESUME_STEP ? len - at : RESUME_STEP;

		rc = resume_compare(check, c->from, data + at, step, &same);
		if (!rc && same)
			resume_advance(check, data + at, step);
	}
	return rc;
}

static int resume_find_with(struct check *check, struct source *src, uint8_t *buf)
{
	struct copy *c = check->c;
	bool same = true;
	int rc = CLI_OK;

	while (c->from < c->total && same && !rc) {
		uint64_t left = c->total - c->from;
		uint32_t len = left < CHECK_PIECE ? (uint32_t)left : CHECK_PIECE;

		rc = source_read(src, buf, c->from, &len);
		if (!rc)
			rc = resume_compare(check, c->from, buf, len, &same);
		if (!rc && same)
			resume_advance(check, buf, len);
		else if (!rc)
			rc = resume_find_in_piece(check, buf, len);
	}
	return rc;
}

int resume_find(struct check *check, struct source *src)
{
	struct copy *c = check->c;
	uint8_t *buf = malloc(CHECK_PIECE);
	int rc;

	if (!buf)
		return cli_fail(CLI_TRANSFER, "out of memory");
	progress_begin(&c->progress, "compare", c->total);
	rc = resume_find_with(check, src, buf);
	progress_end(&c->progress);
	free(buf);
	c->done = c->from;
	check->skipped = c->from / CHECK_PIECE;
	return rc;
}
