/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that keeps a descriptor: keeper HOST:PORT SECRET-FILE REGION [old]. It connects for
 * writing, disconnects, waits for a line on standard input, and connects for reading. Then it
 * nevertheless tries to write, with the descriptor of the present connection or, with "old", with
 * the descriptor of the first connection. It prints the result.
 */
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "regions/session.h"

static void fail(const struct error *err)
{
	fprintf(stderr, "keeper: %s\n", err->text);
	exit(2);
}

static void open_session(struct session *s, char **argv, enum hello_access access)
{
	struct secret secret;
	struct session_opts opts = {.region = argv[3],
				    .access = access,
				    .depth = 4,
				    .timeout_ms = 30000,
				    .secret = &secret};
	struct error err;

	if (address_parse(argv[1], "7204", &opts.server, &err) ||
	    secret_load(&secret, argv[2], &err) || session_open(s, &opts, &err))
		fail(&err);
}

/* The attempt can end the connection, but no byte must be written. */
static void try_to_write(struct session *s, const struct hello_reply *region)
{
	static char word[8] = "written!";
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *dst;

	if (rpma_mr_remote_from_descriptor(region->mr, region->mr_len, &dst) ||
	    session_register(s, word, sizeof(word), &mr, NULL))
		exit(2);
	if (rpma_write(s->conn, dst, 0, mr, 0, sizeof(word), RPMA_F_COMPLETION_ALWAYS, NULL))
		puts("refused at once");
	else if (!session_reap(s, 0, NULL, NULL) &&
		 !rpma_read(s->conn, mr, 0, s->remote, 0, 1, RPMA_F_COMPLETION_ALWAYS, NULL) &&
		 !session_reap(s, 0, NULL, NULL))
		puts("written");
	else
		puts("failed");
	rpma_mr_remote_delete(&dst);
	rpma_mr_dereg(&mr);
}

int main(int argc, char **argv)
{
	struct hello_reply first;
	struct session s;

	if (argc < 4)
		return 2;
	open_session(&s, argv, HELLO_WRITE);
	first = s.region;
	session_close(&s);
	if (getchar() == EOF)
		return 2;
	open_session(&s, argv, HELLO_READ);
	try_to_write(&s, argc > 4 && !strcmp(argv[4], "old") ? &first : &s.region);
	session_close(&s);
	return 0;
}
