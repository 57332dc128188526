/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * batch-verify -- write lines to scattered pages of the server's file and then count them, in one
 * round trip. Afterwards check that the disk really has them.
 *
 * A batch is sent with one system call. The atomic write after the flush takes effect only if the
 * flush succeeded, so the number of lines never includes a line that is not durable. A verify
 * requests a digest of the bytes that the server reads back from the medium.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define LINES    8u
#define LINE_MAX 1000u
/* Each line has its own page; the first page has the number of lines. */
#define PAGE        4096u
#define REGION_SIZE ((1 + LINES) * PAGE)

struct job {
	struct session s;
	struct rpma_mr_local *src;
	char *image; /* the content that the file should have */
	uint32_t lines;
};

static void server(char **args)
{
	offer_file(args, REGION_SIZE, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
		   1);
}

static void check_server(const struct job *job)
{
	uint32_t caps;

	must(rpma_conn_get_remote_caps(job->s.conn, &caps), "capabilities of the server");
	if (!(caps & RPMA_CAP_VERIFY))
		errx(EXIT_FAILURE, "the server cannot verify; it must run rpma, too");
}

static void take_lines(struct job *job, char **text)
{
	for (; *text && job->lines < LINES; text++) {
		size_t len = strlen(*text);

		if (len >= LINE_MAX)
			errx(EXIT_FAILURE, "a line is longer than %u bytes", LINE_MAX - 1);
		memcpy(job->image + (1 + job->lines++) * PAGE, *text, len);
	}
}

/* Data, flush, commit: executed in this order, without a wait between them. */
static void store(struct job *job)
{
	struct rpma_batch *batch;
	uint64_t count = job->lines;

	must(rpma_batch_new(job->s.conn, job->lines + 2, &batch), "make a batch");
	for (uint32_t i = 1; i <= job->lines; i++)
		must(rpma_batch_write(batch, job->s.region, i * PAGE, job->src, i * PAGE, LINE_MAX,
				      RPMA_F_COMPLETION_ON_ERROR, NULL),
		     "write");
	must(rpma_batch_flush_all(batch, RPMA_FLUSH_TYPE_PERSISTENT, RPMA_F_COMPLETION_ON_ERROR,
				  NULL),
	     "flush");
	must(rpma_batch_atomic_write(batch, job->s.region, 0, (const char *)&count,
				     RPMA_F_COMPLETION_ALWAYS, NULL),
	     "commit");
	must(rpma_batch_post(batch), "post the batch");
	must(rpma_batch_delete(&batch), "delete the batch");
}

/* If an operation failed, print which one, the reason and advice, in one line. */
static void await_or_explain(struct job *job)
{
	struct ibv_wc wc = next_completion(job->s.cq);
	char why[256];

	if (wc.status == IBV_WC_SUCCESS)
		return;
	must(rpma_wc_explain(job->s.conn, &wc, why, sizeof(why)), "explain");
	errx(EXIT_FAILURE, "%s", why);
}

/* A verify flushes before it reads, so it makes the commit durable. */
static void verify(struct job *job)
{
	static const char *const sources[] = {"memory", "the page cache", "the medium", "DAX"};
	uint64_t count = job->lines;
	struct rpma_digest ours, theirs;

	memcpy(job->image, &count, sizeof(count));
	must(rpma_verify(job->s.conn, job->s.region, 0, REGION_SIZE, RPMA_DIGEST_AUTO, &theirs,
			 RPMA_F_COMPLETION_ALWAYS, NULL),
	     "verify");
	await_or_explain(job);
	must(rpma_digest_compute(RPMA_DIGEST_AUTO, job->image, REGION_SIZE, &ours), "digest");
	if (!rpma_digest_equal(&ours, &theirs))
		errx(EXIT_FAILURE, "the file of the server has something else");
	printf("verified: %u lines, read back from %s\n", job->lines, sources[theirs.source]);
}

static void client(char **args)
{
	struct job job = {.image = calloc(1, REGION_SIZE)};

	if (!job.image)
		err(EXIT_FAILURE, "memory");
	take_lines(&job, args + 2);
	session_open(&job.s, args, NULL);
	session_take_offer(&job.s, REGION_SIZE);
	check_server(&job);
	must(rpma_mr_reg(job.s.peer, job.image, REGION_SIZE, RPMA_MR_USAGE_WRITE_SRC, &job.src),
	     "register");
	store(&job);
	await_or_explain(&job);
	printf("committed: %u lines\n", job.lines);
	verify(&job);
	session_close(&job.s, &job.src);
	free(job.image);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT FILE", server},
					    {"client", "ADDRESS PORT LINE...", client},
					    {0}};

	return play(argc, argv, roles);
}
