/* SPDX-License-Identifier: BSD-3-Clause */
#include "copy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli.h"

int copy_open(struct copy *c, const struct copy_opts *opts, uint32_t flags, size_t staging)
{
	struct rpma_file_options with = remote_file_options(&opts->remote, flags);
	int rc;

	*c = (struct copy){.opts = opts, .info.size = sizeof(c->info)};
	cli_log_init(opts->remote.verbose);
	rc = remote_check(rpma_file_open(opts->remote.target, &with, &c->file));
	if (rc)
		return rc;
	rpma_file_get_info(c->file, &c->info);
	c->staging = malloc(staging);
	if (c->staging)
		return CLI_OK;
	copy_close(c);
	return cli_fail(CLI_TRANSFER, "out of memory");
}

void copy_close(struct copy *c)
{
	progress_end(&c->progress);
	rpma_file_close(&c->file);
	free(c->staging);
	c->staging = NULL;
}

int copy_check(struct copy *c, int rc)
{
	if (rc)
		progress_end(&c->progress);
	return remote_check(rc);
}

int copy_check_offset(const struct copy *c)
{
	if (c->opts->offset <= c->info.length)
		return CLI_OK;
	return cli_fail(CLI_REFUSED, "offset %" PRIu64 " is outside region '%s' of %s",
			c->opts->offset, c->info.region, text_bytes(c->info.length).text);
}

static void summary_json(const struct copy *c, const char *verb, double seconds, const char *more)
{
	printf("{\"operation\":\"%s\",\"file\":", verb);
	cli_json_string("", c->opts->file);
	cli_json_string(",\"server\":", c->info.server);
	cli_json_string(",\"region\":", c->info.region);
	printf(",\"durability\":\"%s\",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64
	       ",\"transfer_seconds\":%.6f,\"transfer_mib_per_s\":%.1f%s}\n",
	       rpma_utils_durability_2str(c->info.durability), c->opts->offset, c->total, seconds,
	       (double)(c->total - c->from) / seconds / (1 << 20), more);
}

void copy_summary(const struct copy *c, const char *verb, const char *more)
{
	double seconds = progress_seconds(&c->progress);

	if (c->opts->remote.json) {
		summary_json(c, verb, seconds, more);
		return;
	}
	printf("%s: %" PRIu64 " bytes %s region '%s' of %s at offset %" PRIu64 ", "
	       "transferred in %.3f s, %.1f MiB/s%s\n",
	       verb, c->total, strcmp(verb, "put") ? "from" : "to", c->info.region, c->info.server,
	       c->opts->offset, seconds, (double)(c->total - c->from) / seconds / (1 << 20), more);
}
