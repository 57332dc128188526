/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * read -- a client reads the server's memory while the server does nothing.
 *
 * The server registers a piece of its memory for reading, and sends the descriptor to the client.
 * Then it sleeps until the client disconnects: no code of this program runs to answer a read.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

#define BOARD_SIZE 4096

static void server(char **args)
{
	static char board[BOARD_SIZE]; /* any memory is suitable */

	if (snprintf(board, sizeof(board), "%s", args[2]) >= (int)sizeof(board))
		errx(EXIT_FAILURE, "the text is longer than %d bytes", BOARD_SIZE - 1);
	offer_region(args, board, sizeof(board), RPMA_MR_USAGE_READ_SRC, 1);
}

static void client(char **args)
{
	static char copy[BOARD_SIZE];
	struct rpma_mr_local *dst;
	struct session s;
	size_t size;

	session_open(&s, args, NULL);
	session_take_offer(&s, 1);
	must(rpma_mr_remote_get_size(s.region, &size), "size of the region");
	printf("the server offers %zu bytes\n", size);
	if (size > sizeof(copy))
		size = sizeof(copy);

	/* The destination of a read must be registered as well. */
	must(rpma_mr_reg(s.peer, copy, sizeof(copy), RPMA_MR_USAGE_READ_DST, &dst), "register");
	must(rpma_read(s.conn, dst, 0, s.region, 0, size, RPMA_F_COMPLETION_ALWAYS, NULL), "read");
	/* The call only queued the read: the device uses `copy` until the completion is taken. */
	await(s.cq, "read");
	printf("it reads: %.*s\n", (int)size, copy);
	session_close(&s, &dst);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		{"server", "ADDRESS PORT TEXT", server}, {"client", "ADDRESS PORT", client}, {0}};

	return play(argc, argv, roles);
}
