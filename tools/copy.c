/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cli.h"
#include "copy.h"

int copy_open(struct copy *c, const struct copy_opts *opts)
{
	size_t size = (size_t)COPY_DEPTH * COPY_CHUNK;
	int rc;

	memset(c, 0, sizeof(*c));
	c->opts = opts;
	cli_log_init(opts->client.verbose);
	rc = client_open(&c->s, &opts->client);
	if (rc)
		return rc;
	c->staging = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->staging == MAP_FAILED) {
		c->staging = NULL;
		rc = cli_fail(CLI_TRANSFER, "out of memory");
	} else {
		rc = client_register(&c->s, c->staging, size, &c->mr);
	}
	if (rc)
		copy_close(c);
	return rc;
}

void copy_close(struct copy *c)
{
	progress_end(&c->progress);
	rpma_mr_dereg(&c->mr);
	session_close(&c->s);
	if (c->staging)
		munmap(c->staging, (size_t)COPY_DEPTH * COPY_CHUNK);
	c->staging = NULL;
}

bool copy_has_room(const struct copy *c)
{
	return c->begun < c->total && c->moves - c->moved < COPY_DEPTH;
}

uint32_t copy_next(struct copy *c, struct copy_op *op)
{
	uint64_t left = c->total - c->begun;

	*op = (struct copy_op){.at = c->begun,
			       .len = left < COPY_CHUNK ? (uint32_t)left : COPY_CHUNK};
	return (c->moves % COPY_DEPTH) * COPY_CHUNK;
}

void copy_posted(struct copy *c, const struct copy_op *op)
{
	c->ops[c->posted++ % (COPY_DEPTH + COPY_FLUSHES)] = *op;
	if (op->is_flush) {
		c->flushes++;
	} else {
		c->moves++;
		c->begun += op->len;
	}
}

int copy_finish_oldest(struct copy *c, struct copy_op *op, uint32_t *buffer)
{
	int rc = client_reap(&c->s, 0, NULL);

	if (rc) {
		progress_end(&c->progress);
		return rc;
	}
	*op = c->ops[c->finished++ % (COPY_DEPTH + COPY_FLUSHES)];
	if (op->is_flush) {
		c->flushed++;
	} else {
		*buffer = (c->moved++ % COPY_DEPTH) * COPY_CHUNK;
		c->done += op->len;
		progress_show(&c->progress, c->done);
	}
	return CLI_OK;
}

static void summary_json(const struct copy *c, const char *verb, double seconds, const char *more)
{
	printf("{\"operation\":\"%s\",\"file\":", verb);
	cli_json_string(c->opts->file);
	printf(",\"server\":");
	cli_json_string(c->s.server);
	printf(",\"region\":");
	cli_json_string(c->s.region.region);
	printf(",\"durability\":\"%s\",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"transfer_seconds\":%.6f,\"transfer_mib_per_s\":%.1f%s}\n",
	       rpma_utils_durability_2str(c->s.region.durability), c->opts->offset, c->total,
	       seconds, (double)(c->total - c->from) / seconds / (1 << 20), more);
}

void copy_summary(const struct copy *c, const char *verb, const char *more)
{
	double seconds = progress_seconds(&c->progress);

	if (c->opts->json) {
		summary_json(c, verb, seconds, more);
		return;
	}
	printf("%s: %" PRIu64 " bytes %s region '%s' of %s at offset %" PRIu64 ", "
	       "transferred in %.3f s, %.1f MiB/s%s\n",
	       verb, c->total, strcmp(verb, "put") ? "from" : "to", c->s.region.region, c->s.server,
	       c->opts->offset, seconds, (double)(c->total - c->from) / seconds / (1 << 20), more);
}
