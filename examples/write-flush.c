/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write-flush -- a client writes into a file of the server, and gets a completion when the bytes
 * are on the disk.
 *
 * The completion of a write means only that its source may be used again. The completion of the
 * flush after it means more: the bytes survive a crash of the server's machine. The program posts
 * both together, so they take one round trip.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define REGION_SIZE 4096

/* Map the file and sleep. The server never calls msync(2): the client's flush has the same
 * effect. */
static void server(char **args)
{
	offer_file(args, REGION_SIZE, RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
		   1);
}

/*
 * Check the flush type now: otherwise only a failed flush would show that the server did not
 * register its memory for this type.
 */
static void check_flush_type(const struct session *s)
{
	int types = 0;

	must(rpma_mr_remote_get_flush_type(s->region, &types), "flush types of the region");
	if (!(types & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT))
		errx(EXIT_FAILURE, "the server does not offer persistence");
}

static void client(char **args)
{
	static char page[REGION_SIZE];
	size_t len = strlen(args[2]) + 1;
	struct rpma_mr_local *src;
	struct session s;
	struct ibv_wc wc;
	char why[256];

	if (len > sizeof(page))
		errx(EXIT_FAILURE, "the text is longer than %d bytes", REGION_SIZE - 1);
	memcpy(page, args[2], len);
	session_open(&s, args, NULL);
	session_take_offer(&s, len);
	check_flush_type(&s);
	must(rpma_mr_reg(s.peer, page, sizeof(page), RPMA_MR_USAGE_WRITE_SRC, &src), "register");

	/* Operations complete in the order of their posts, so the flush's completion also proves
	 * that the write has completed. */
	must(rpma_write(s.conn, s.region, 0, src, 0, len, RPMA_F_COMPLETION_ON_ERROR, "write"),
	     "write");
	must(rpma_flush(s.conn, s.region, 0, len, RPMA_FLUSH_TYPE_PERSISTENT,
			RPMA_F_COMPLETION_ALWAYS, "flush"),
	     "flush");
	wc = next_completion(s.cq);
	if (wc.status != IBV_WC_SUCCESS) { /* wr_id is the op_context of the failed call */
		must(rpma_wc_explain(s.conn, &wc, why, sizeof(why)), "explain");
		errx(EXIT_FAILURE, "%s: %s", (const char *)(uintptr_t)wc.wr_id, why);
	}
	printf("durable: %s\n", page);
	session_close(&s, &src);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT FILE", server},
					    {"client", "ADDRESS PORT TEXT", client},
					    {0}};

	return play(argc, argv, roles);
}
