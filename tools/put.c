/* SPDX-License-Identifier: BSD-3-Clause */
/* rpma put: copies a local file, or the bytes of a pipe, into a remote region. */
#include <inttypes.h>
#include <stdio.h>

#include "check.h"
#include "base/text.h"
#include "cli.h"
#include "commands.h"
#include "copy.h"
#include "resume.h"
#include "source.h"

#define PUT_FLUSHES 4            /* largest number of outstanding flushes */
#define PUT_CHUNK   (256u << 10) /* bytes of the source that are read at a time */
/* A write of this size is copied, and is sent while the next write is read. */
#define PUT_WRITE (32u << 10)

struct put_flush {
	uint64_t ticket, at;
};

struct put {
	struct copy c;
	struct source source;
	/* bytes before this offset are flushed, or their flush is outstanding */
	uint64_t flush_from;
	unsigned started, ended; /* number of flushes begun and ended */
	struct put_flush flushes[PUT_FLUSHES];
	struct check check;
};

/* Set the total. For a source without a size, the total is the rest of the region, until the
 * source ends. */
static int put_check_room(struct put *p)
{
	const struct copy_opts *opts = p->c.opts;
	uint64_t room = p->c.info.length - opts->offset;
	int rc = copy_check_offset(&p->c);

	if (rc)
		return rc;
	p->c.total = p->source.is_sized ? p->source.size : room;
	if (p->c.total > room)
		return cli_fail(CLI_REFUSED,
				"%s has %" PRIu64 " bytes, but from offset %" PRIu64
				" region '%s' has only %" PRIu64 "; serve a larger file",
				p->source.name, p->c.total, opts->offset, p->c.info.region, room);
	return CLI_OK;
}

/* The region is full, so the source must be at its end. */
static int put_check_end(struct put *p)
{
	bool more = false;
	int rc = p->source.is_sized ? CLI_OK : source_has_more(&p->source, &more);

	if (rc || !more)
		return rc;
	return cli_fail(CLI_REFUSED,
			"%s has more than the %" PRIu64 " bytes that region '%s' has from offset "
			"%" PRIu64 "%s; serve a larger file",
			p->source.name, p->c.total, p->c.info.region, p->c.opts->offset,
			p->c.done ? ", and its beginning was written already" : "");
}

static int put_check_durability(const struct put *p)
{
	const struct rpma_file_info *info = &p->c.info;

	if (info->persists || p->c.opts->allow_volatile)
		return CLI_OK;
	return cli_fail(
		CLI_REFUSED,
		"region '%s' of %s is %s memory that its server cannot persist; --allow-volatile "
		"accepts such memory",
		info->region, info->server, rpma_utils_durability_2str(info->durability));
}

/* Returns the number of bytes until the next flush. */
static uint64_t put_until_flush(const struct put *p)
{
	uint64_t unflushed = p->c.done - p->flush_from, every = p->c.opts->flush_every;

	return every ? every - unflushed : UINT64_MAX;
}

/* Read the next chunk of the source. *len is the chunk's length, or 0 at the source's end. */
static int put_read(struct put *p, uint32_t *len)
{
	uint64_t left = p->c.total - p->c.done, most = put_until_flush(p);
	int rc;

	if (left < most)
		most = left;
	*len = most < PUT_CHUNK ? (uint32_t)most : PUT_CHUNK;
	rc = source_read(&p->source, p->c.staging, p->c.done, len);
	if (!rc && p->source.ended)
		p->c.total = p->c.done + *len;
	else if (!rc && p->c.done + *len == p->c.total)
		rc = put_check_end(p);
	return rc;
}

static int put_write(struct put *p, uint32_t len)
{
	int rc = 0;

	for (uint32_t at = 0; at < len && !rc; at += PUT_WRITE)
		rc = rpma_file_pwrite(p->c.file, p->c.staging + at,
				      len - at < PUT_WRITE ? len - at : PUT_WRITE,
				      p->c.opts->offset + p->c.done + at);
	p->c.done += len;
	progress_show(&p->c.progress, p->c.done);
	return rc;
}

/* Print to standard output, where scripts read the line, or to standard error if standard output
 * has JSON. */
static void put_note_flushed(const struct copy_opts *opts, uint64_t offset)
{
	char text[64];

	snprintf(text, sizeof(text), "flushed up to offset %" PRIu64, offset);
	if (opts->remote.json) {
		cli_note(LOG_LVL_NOTICE, "%s", text);
		return;
	}
	progress_pause();
	puts(text);
	progress_resume();
}

/* Add to each error line how many bytes are on the medium. */
static void put_set_tail(const struct put *p, uint64_t flushed)
{
	const char *how =
		p->c.opts->is_raw || !p->source.is_sized ? "" : "; --resume goes on from there";

	if (!p->c.info.persists)
		return;
	if (flushed == 0)
		cli_set_tail("; nothing is flushed");
	else
		cli_set_tail("; all bytes are flushed up to offset %" PRIu64 "%s",
			     p->c.opts->offset + flushed, how);
}

/* Wait until at most `most` flushes are outstanding. Also handle flushes that have already
 * completed. */
static int put_end_flushes(struct put *p, unsigned most)
{
	int rc = 0;

	while (p->ended < p->started) {
		const struct put_flush *flush = &p->flushes[p->ended % PUT_FLUSHES];

		rc = rpma_file_sync_wait(p->c.file, flush->ticket,
					 p->started - p->ended > most ? -1 : 0);
		if (rc)
			break;
		p->ended++;
		put_set_tail(p, flush->at);
		if (p->c.opts->remote.verbose)
			put_note_flushed(p->c.opts, p->c.opts->offset + flush->at);
	}
	return rc == RPMA_E_AGAIN ? 0 : rc;
}

static int put_flush(struct put *p)
{
	struct rpma_file_range range = {p->c.opts->offset + p->flush_from,
					p->c.done - p->flush_from};
	int rc = put_end_flushes(p, PUT_FLUSHES - 1);
	struct put_flush *flush = &p->flushes[p->started % PUT_FLUSHES];

	if (!rc)
		rc = rpma_file_sync_start(p->c.file, &range, 1, &flush->ticket);
	if (rc)
		return rc;
	flush->at = p->flush_from = p->c.done;
	p->started++;
	return 0;
}

/*
 * After a failed call, end the flushes first, because the error line reports how many bytes are
 * flushed. A flush that fails does not change the error text, because a file's first failure is
 * the result of all later calls.
 */
static int put_check(struct put *p, int rc)
{
	if (rc)
		put_end_flushes(p, PUT_FLUSHES);
	return copy_check(&p->c, rc);
}

static int put_step(struct put *p)
{
	uint32_t len;
	int rc = put_check(p, put_end_flushes(p, PUT_FLUSHES));

	if (!rc)
		rc = put_read(p, &len);
	if (rc)
		return rc;
	check_feed(&p->check, p->c.staging, len);
	rc = put_write(p, len);
	if (!rc && p->c.done > p->flush_from && (p->c.done == p->c.total || !put_until_flush(p)))
		rc = put_flush(p);
	return put_check(p, rc);
}

static int put_run(struct put *p)
{
	int rc = CLI_OK;

	progress_begin(&p->c.progress, "put", p->source.is_sized ? p->c.total : 0);
	if (p->c.total == 0)
		rc = put_check_end(p);
	while (!rc && p->flush_from < p->c.total)
		rc = put_step(p);
	if (!rc)
		rc = put_check(p, put_end_flushes(p, 0));
	progress_end(&p->c.progress);
	return rc;
}

/* Before the first byte, check that the region has the bytes that --resume requires, and claim the
 * range. Returns an exit code. */
static int put_begin(struct put *p)
{
	const struct source *src = &p->source;
	int rc = p->c.opts->resume ? resume_check(&p->check, src) : CLI_OK;

	if (rc)
		return rc;
	if (p->c.opts->is_raw)
		rc = rpma_file_claim(p->c.file, p->c.opts->offset, src->is_sized ? src->size : 0);
	else
		rc = rpma_file_put_begin(p->c.file, src->is_sized ? src->size : UINT64_MAX,
					 src->time_ns);
	rc = remote_check(rc);
	if (!rc && p->c.opts->resume)
		rc = resume_find(&p->check, &p->source);
	p->flush_from = p->c.from;
	if (!rc)
		put_set_tail(p, p->c.from);
	return rc;
}

/* Last step: check that the file's name leads to the flushed and verified bytes. */
static int put_end(struct put *p)
{
	uint8_t digest[CHECK_DIGEST];

	if (p->c.opts->is_raw)
		return remote_check(rpma_file_close(&p->c.file));
	check_whole(&p->check, digest);
	return remote_check(rpma_file_put_end(p->c.file, p->c.total, digest));
}

static int put_transfer(struct put *p)
{
	int rc = check_init(&p->check, &p->c);

	if (!rc)
		rc = put_begin(p);
	if (!rc)
		rc = put_run(p);
	if (!rc)
		rc = check_run(&p->check);
	return rc ? rc : put_end(p);
}

static void put_summarise(const struct put *p)
{
	bool json = p->c.opts->remote.json, flushed = p->c.info.persists;
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
	int rc = copy_open(&p->c, opts, RPMA_FILE_UNCLAIMED | RPMA_FILE_VOLATILE_OK, PUT_CHUNK);

	if (rc)
		return rc;
	rc = put_check_room(p);
	if (!rc)
		rc = put_check_durability(p);
	if (!rc)
		rc = put_transfer(p);
	if (!rc) {
		/* From here only the output can fail; an error line then reports that the put is
		 * done. */
		cli_set_tail("; the put itself is complete");
		put_summarise(p);
	}
	check_fini(&p->check);
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
	setvbuf(stdout, NULL, _IOLBF, 0); /* scripts read each line as soon as it is printed */
	rc = source_open(&put.source, opts.file);
	if (!rc)
		rc = put_file(&opts, &put);
	source_close(&put.source);
	return rc;
}
