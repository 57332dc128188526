/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_cost library|librpma HOST:PORT N LENGTH RECORDS -- N times, append RECORDS records of LENGTH
 * bytes to a log, and make them durable. "library" uses librpmafile. "librpma" makes the calls of a
 * program without librpmafile: copy into a registered buffer, post a batch of writes and a flush,
 * and wait.
 */
#include <err.h>
#include <librpmafile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "regions/session.h"

#define RING (1u << 20)

static char bytes[65536], ring[RING];

static void must(int rc, const char *what)
{
	if (rc)
		errx(EXIT_FAILURE, "%s: %s%s", what, rpma_file_errormsg(), rpma_err_last());
}

static uint64_t at; /* the end of the log; after RING bytes the log begins again at 0 */

static uint64_t advance(size_t len)
{
	uint64_t begin = at + len <= RING ? at : 0;

	at = begin + len;
	return begin;
}

static void by_library(const char *target, unsigned n, size_t len, unsigned records)
{
	struct rpma_file_options options = {.size = sizeof(options),
					    .flags = RPMA_FILE_VOLATILE_OK};
	struct rpma_file *file;

	must(rpma_file_open(target, &options, &file), "open");
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < records; k++)
			must(rpma_file_pwrite(file, bytes, len, advance(len)), "write");
		must(rpma_file_sync(file, NULL, 0), "sync");
	}
	must(rpma_file_close(&file), "close");
}

static void group_by_librpma(struct session *s, struct rpma_mr_local *mr, struct rpma_batch *batch,
			     size_t len, unsigned records)
{
	struct ibv_wc wc;
	int rc;

	for (unsigned k = 0; k < records; k++) {
		uint64_t to = advance(len);

		memcpy(ring + to, bytes, len);
		must(rpma_batch_write(batch, s->remote, to, mr, to, len, RPMA_F_COMPLETION_ON_ERROR,
				      NULL),
		     "write");
	}
	must(rpma_batch_flush_all(batch, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ALWAYS,
				  NULL),
	     "flush");
	must(rpma_batch_post(batch), "post");
	do {
		must(rpma_cq_wait_timeout(s->completions.cq, 10000), "wait");
		rc = rpma_cq_get_wc(s->completions.cq, 1, &wc, NULL);
	} while (rc == RPMA_E_NO_COMPLETION);
	must(rc || wc.status, "completion");
}

static void by_librpma(const char *target, unsigned n, size_t len, unsigned records)
{
	struct session_opts opts = {
		.region = "", .access = HELLO_WRITE, .depth = 256, .timeout_ms = 10000};
	struct hello_begin begin = {.length = HELLO_LENGTH_UNKNOWN};
	struct rpma_mr_local *mr;
	struct rpma_batch *batch;
	struct session s;
	struct error error;

	must(address_parse(target, "1", &opts.server, &error), "address");
	must(session_open(&s, &opts, &error), "open");
	must(session_register(&s, ring, RING, &mr, &error), "register");
	must(session_put_begin(&s, &begin, &error), "begin");
	must(rpma_batch_new(s.conn, 64, &batch), "batch");
	for (unsigned i = 0; i < n; i++)
		group_by_librpma(&s, mr, batch, len, records);
	must(session_confirm(&s, &error), "confirm");
	rpma_batch_delete(&batch);
	rpma_mr_dereg(&mr);
	session_close(&s);
}

int main(int argc, char **argv)
{
	if (argc != 6)
		errx(EXIT_FAILURE, "usage: file_cost library|librpma HOST:PORT N LENGTH RECORDS");
	(strcmp(argv[1], "librpma") ? by_library : by_librpma)(
		argv[2], (unsigned)atoi(argv[3]), (size_t)atoi(argv[4]), (unsigned)atoi(argv[5]));
	return EXIT_SUCCESS;
}
