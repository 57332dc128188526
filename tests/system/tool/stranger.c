/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that sends the given bytes as its hello to `rpma serve`: stranger HOST PORT HEX-BYTES.
 * It prints the status byte of the answer, and waits until the server has closed the connection.
 */
#include <librpma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_AT 5 /* offset of the status, after the magic number and the version */

static void must(const char *what, int rc)
{
	if (rc) {
		fprintf(stderr, "stranger: %s: %s\n", what, rpma_err_2str(rc));
		exit(2);
	}
}

static uint8_t parse_hex(const char *hex, uint8_t *buf)
{
	uint8_t len = 0;
	unsigned byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		buf[len++] = (uint8_t)byte;
	return len;
}

static void expect_event(struct rpma_conn *conn, enum rpma_conn_event want)
{
	enum rpma_conn_event event;

	must("next event", rpma_conn_next_event(conn, &event));
	if (event != want) {
		fprintf(stderr, "stranger: %s\n", rpma_utils_conn_event_2str(event));
		exit(2);
	}
}

static void print_status(struct rpma_conn *conn)
{
	struct rpma_conn_private_data answer;

	must("answer", rpma_conn_get_private_data(conn, &answer));
	if (answer.len <= STATUS_AT || memcmp(answer.ptr, "RPMA", 4)) {
		fprintf(stderr, "stranger: an answer of %u bytes\n", answer.len);
		exit(2);
	}
	printf("%u\n", ((const uint8_t *)answer.ptr)[STATUS_AT]);
	fflush(stdout); /* a script waits for this line */
}

int main(int argc, char **argv)
{
	uint8_t hello[256];
	struct rpma_conn_private_data pdata = {hello, 0};
	struct ibv_context *context;
	struct rpma_peer *peer;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	if (argc != 4)
		return 2;
	pdata.len = parse_hex(argv[3], hello);
	must("device", rpma_utils_get_ibv_context(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
	must("peer", rpma_peer_new(context, &peer));
	must("request", rpma_conn_req_new(peer, argv[1], argv[2], NULL, &req));
	must("connect", rpma_conn_req_connect(&req, pdata.len ? &pdata : NULL, &conn));
	expect_event(conn, RPMA_CONN_ESTABLISHED);
	print_status(conn);
	expect_event(conn, RPMA_CONN_CLOSED);
	must("disconnect", rpma_conn_disconnect(conn));
	must("delete", rpma_conn_delete(&conn));
	must("peer", rpma_peer_delete(&peer));
	return 0;
}
