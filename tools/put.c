/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma put: a local file, or what comes from a pipe, into a remote region. */
#include <inttypes.h>
#include <stdio.h>

#include "check.h"
#include "base/text.h"
#include "cli.h"
#include "commands.h"
#include "copy.h"
#include "resume.h"
#include "source.h"

struct put {
	struct copy c;
	struct source source;
	uint64_t flush_from; /* everything before is flushed, or its flush is on the way */
	enum rpma_flush_type flush_type;
	struct rpma_batch *batch; /* a write and a flush leave together */
	struct check check;
};

/* Without a size the total is what there is room for, until the end has come. */
static int put_check_room(struct put *p)
{
	const struct copy_opts *opts = p->c.opts;
	const struct hello_reply *region = &p->c.s.region;
	uint64_t room = region->size - opts->offset;

	if (opts->offset > region->size)
		return cli_fail(CLI_REFUSED, "offset %" PRIu64 " is outside region '%s' of %s",
				opts->offset, region->region, text_bytes(region->size).text);
	p->c.total = p->source.is_sized ? p->source.size : room;
	if (p->c.total > room)
		return cli_fail(CLI_REFUSED,
				"%s has %" PRIu64 " bytes, but from offset %" PRIu64
				" region '%s' has only %" PRIu64 "; serve a larger file",
				p->source.name, p->c.total, opts->offset, region->region, room);
	return CLI_OK;
}

/* The room is used up; nothing must be left. */
static int put_check_end(struct put *p)
{
	bool more = false;
	int rc = p->source.is_sized ? CLI_OK : source_has_more(&p->source, &more);

	if (rc || !more)
		return rc;
	return cli_fail(CLI_REFUSED,
			"%s has more than the %" PRIu64 " bytes that region '%s' has from offset "
			"%" PRIu64 "%s; serve a larger file",
			p->source.name, p->c.total, p->c.s.region.region, p->c.opts->offset,
			p->c.begun ? ", and its beginning was written already" : "");
}

static int put_choose_flush(struct put *p)
{
	int type = 0;

	rpma_mr_remote_get_flush_type(p->c.s.remote, &type);
	p->flush_type = RPMA_FLUSH_TYPE_PERSISTENT;
	if (type & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)
		return CLI_OK;
	p->flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
	if (p->c.opts->allow_volatile)
		return CLI_OK;
	return cli_fail(CLI_REFUSED,
			"region '%s' of %s is %s memory that its server cannot persist; "
			"--allow-volatile accepts that",
			p->c.s.region.region, p->c.s.server,
			rpma_utils_durability_2str(p->c.s.region.durability));
}

/* What may still be written before a flush is wanted. */
static uint64_t put_until_flush(const struct put *p)
{
	uint64_t unflushed = p->c.begun - p->flush_from, every = p->c.opts->flush_every;

	if (!every)
		return UINT64_MAX;
	return unflushed < every ? every - unflushed : 0;
}

static int put_add_write(struct put *p)
{
	struct copy_op op;
	uint32_t buffer = copy_next(&p->c, &op);
	int rc;

	if (op.len > put_until_flush(p))
		op.len = (uint32_t)put_until_flush(p);
	rc = source_read(&p->source, p->c.staging + buffer, op.at, &op.len);

	if (!rc && p->source.ended)
		p->c.total = op.at + op.len;
	else if (!rc && op.at + op.len == p->c.total)
		rc = put_check_end(p);
	if (rc || op.len == 0)
		return rc;
	check_feed(&p->check, p->c.staging + buffer, op.len);
	rc = rpma_batch_write(p->batch, p->c.s.remote, p->c.opts->offset + op.at, p->c.mr, buffer,
			      op.len, RPMA_F_COMPLETION_ALWAYS, NULL);
	if (rc)
		return client_post_failed(&p->c.s, "write to", rc);
	copy_posted(&p->c, &op);
	return CLI_OK;
}

static bool put_flush_is_wanted(const struct put *p)
{
	return p->c.begun > p->flush_from && (p->c.begun == p->c.total || !put_until_flush(p));
}

static int put_add_flush(struct put *p)
{
	struct copy_op op = {.is_flush = true, .at = p->c.begun};
	int rc = rpma_batch_flush(p->batch, p->c.s.remote, p->c.opts->offset + p->flush_from,
				  p->c.begun - p->flush_from, p->flush_type,
				  RPMA_F_COMPLETION_ALWAYS, NULL);

	if (rc)
		return client_post_failed(&p->c.s, "flush at", rc);
	copy_posted(&p->c, &op);
	p->flush_from = op.at;
	return CLI_OK;
}

/* Scripts read the line from standard output, unless what they read there is JSON. */
static void put_note_flushed(const struct copy_opts *opts, uint64_t offset)
{
	char text[64];

	snprintf(text, sizeof(text), "flushed up to offset %" PRIu64, offset);
	if (opts->json) {
		cli_note("%s", text);
		return;
	}
	progress_pause();
	puts(text);
	progress_resume();
}

/* With a failure, the user learns how much of it is on the medium. */
static void put_set_tail(const struct put *p, uint64_t flushed)
{
	const char *how =
		p->c.opts->is_raw || !p->source.is_sized ? "" : "; --resume goes on from there";

	if (p->flush_type != RPMA_FLUSH_TYPE_PERSISTENT)
		return;
	if (flushed == 0)
		cli_set_tail("; nothing is flushed");
	else
		cli_set_tail("; all is flushed up to offset %" PRIu64 "%s",
			     p->c.opts->offset + flushed, how);
}

static int put_finish_one(struct put *p)
{
	struct copy_op op;
	uint32_t buffer;
	int rc = copy_finish_oldest(&p->c, &op, &buffer);

	if (rc || !op.is_flush)
		return rc;
	put_set_tail(p, op.at);
	if (p->c.opts->client.verbose)
		put_note_flushed(p->c.opts, p->c.opts->offset + op.at);
	return CLI_OK;
}

/* Post what can be posted, or else wait for something. */
static int put_step(struct put *p)
{
	uint32_t count;
	int rc = CLI_OK;

	/* No byte of the next flush goes out before this one's turn has come. */
	if (!put_flush_is_wanted(p) && copy_has_room(&p->c))
		rc = put_add_write(p);
	if (!rc && put_flush_is_wanted(p) && p->c.flushes - p->c.flushed < COPY_FLUSHES)
		rc = put_add_flush(p);
	if (rc)
		return rc;
	rpma_batch_get_count(p->batch, &count);
	if (count == 0)
		return p->c.finished < p->c.posted ? put_finish_one(p) : CLI_OK;
	rc = rpma_batch_post(p->batch);
	return rc ? client_post_failed(&p->c.s, "write to", rc) : CLI_OK;
}

static int put_run(struct put *p)
{
	int rc = CLI_OK;

	progress_begin(&p->c.progress, "put", p->source.is_sized ? p->c.total : 0);
	if (p->c.total == 0)
		rc = put_check_end(p);
	while (!rc && (p->flush_from < p->c.total || p->c.finished < p->c.posted))
		rc = put_step(p);
	progress_end(&p->c.progress);
	return rc;
}

/* Before the first byte: is what is there the beginning of the file, and may it be written? */
static int put_begin(struct put *p)
{
	struct hello_begin begin = {.is_file = !p->c.opts->is_raw,
				    .offset = p->c.opts->offset,
				    .length = p->source.is_sized ? p->source.size
								 : HELLO_LENGTH_UNKNOWN,
				    .time_ns = p->source.time_ns};
	int rc = p->c.opts->resume ? resume_check(&p->check, &p->source) : CLI_OK;

	if (!rc)
		rc = client_put_begin(&p->c.s, &begin);
	if (!rc && p->c.opts->resume)
		rc = resume_find(&p->check, &p->source);
	p->flush_from = p->c.from;
	if (!rc)
		put_set_tail(p, p->c.from);
	return rc;
}

/* What still can fail is the output. */
static void put_set_done(void)
{
	cli_set_tail("; the put itself is complete");
}

/* Last of all: what was flushed and verified must be what the file's name leads to. */
static int put_end(struct put *p)
{
	struct hello_content content = {
		.state = HELLO_CONTENT_WHOLE, .length = p->c.total, .time_ns = p->source.time_ns};

	if (p->c.opts->is_raw)
		return client_confirm(&p->c.s);
	check_whole(&p->check, content.digest);
	return client_put_end(&p->c.s, &content);
}

static int put_transfer(struct put *p)
{
	int rc = check_init(&p->check, &p->c, p->flush_type == RPMA_FLUSH_TYPE_PERSISTENT);

	if (!rc)
		rc = put_begin(p);
	if (rc)
		return rc;
	rc = rpma_batch_new(p->c.s.conn, 2, &p->batch);
	if (rc)
		return client_post_failed(&p->c.s, "prepare to write to", rc);
	rc = put_run(p);
	if (!rc)
		rc = check_run(&p->check);
	return rc ? rc : put_end(p);
}

static void put_summarise(const struct put *p)
{
	bool json = p->c.opts->json, flushed = p->flush_type == RPMA_FLUSH_TYPE_PERSISTENT;
	char resumed[64] = "", verified[192], text[320];

	check_describe(&p->check, json, verified, sizeof(verified));
	if (p->c.opts->resume)
		snprintf(resumed, sizeof(resumed),
			 json ? ",\"resumed_at\":%" PRIu64 : ", resumed at offset %" PRIu64,
			 p->c.from);
	if (json)
		snprintf(text, sizeof(text), "%s,\"flushed\":%s%s", resumed,
			 flushed ? "true" : "false", verified);
	else
		snprintf(text, sizeof(text), "%s, flushed to persistence: %s%s", resumed,
			 flushed ? "yes" : "no (volatile memory)", verified);
	copy_summary(&p->c, "put", text);
}

static int put_file(const struct copy_opts *opts, struct put *p)
{
	int rc = copy_open(&p->c, opts);

	if (rc)
		return rc;
	rc = put_check_room(p);
	if (!rc)
		rc = put_choose_flush(p);
	if (!rc)
		rc = put_transfer(p);
	if (!rc)
		put_set_done();
	if (!rc)
		put_summarise(p);
	check_fini(&p->check);
	rpma_batch_delete(&p->batch);
	copy_close(&p->c);
	return rc;
}

int cmd_put(int argc, char **argv)
{
	struct copy_opts opts;
	struct put put = {0};
	int rc = copy_parse(argc, argv, true, &opts);

	if (rc)
		return rc < 0 ? CLI_OK : rc;
	setvbuf(stdout, NULL, _IOLBF, 0); /* scripts read the lines as they are acknowledged */
	rc = source_open(&put.source, opts.file);
	if (!rc)
		rc = put_file(&opts, &put);
	source_close(&put.source);
	return rc;
}
