/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * connect -- two programs connect, and each sends its name.
 *
 * While a connection is made, each end can send a few bytes, its private data, to the program at
 * the other end. The client's bytes come with its request, before the server has to decide. The
 * server's bytes come with the acceptance or the rejection. This is enough to exchange names,
 * versions or descriptors.
 *
 * This example has every step; the other examples use the functions of common.h instead.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

/*
 * The bytes come from an unknown program and can have any value. Some fabrics pad them with zeros,
 * so the text ends at the first zero, not at the length.
 */
static void read_name(const struct rpma_conn_private_data *pdata, char name[UINT8_MAX + 1])
{
	memset(name, 0, UINT8_MAX + 1);
	if (pdata->len)
		memcpy(name, pdata->ptr, pdata->len);
}

static struct rpma_conn_private_data text(char *str)
{
	size_t len = strlen(str) + 1;

	if (len > UINT8_MAX)
		errx(EXIT_FAILURE, "private data has room for %d bytes", UINT8_MAX);
	return (struct rpma_conn_private_data){.ptr = str, .len = (uint8_t)len};
}

static void welcome(struct rpma_conn_req *req)
{
	struct rpma_conn_private_data answer = text((char[]){"welcome, I am the server"});
	enum rpma_conn_event event;
	struct rpma_conn *conn;

	/* The call consumes the request: req becomes NULL, and conn replaces it. */
	must(rpma_conn_req_connect(&req, &answer, &conn), "accept");
	must(rpma_conn_next_event(conn, &event), "wait for the connection");
	printf("%s\n", rpma_utils_conn_event_2str(event));
	if (event != RPMA_CONN_ESTABLISHED)
		exit(EXIT_FAILURE);

	/* The two programs would work here. The next event is the end of the connection. */
	must(rpma_conn_next_event(conn, &event), "wait for the end");
	printf("%s\n", rpma_utils_conn_event_2str(event));
	rpma_conn_disconnect(conn);
	must(rpma_conn_delete(&conn), "delete the connection");
}

static void server(char **args)
{
	struct rpma_peer *peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_ep *ep = listen_at(peer, args[0], args[1]);
	struct rpma_conn_private_data hello, why = text((char[]){"tell me your name"});
	char name[UINT8_MAX + 1];
	struct rpma_conn_req *req;

	must(rpma_ep_next_conn_req(ep, NULL, &req), "wait for a client");
	must(rpma_conn_req_get_private_data(req, &hello), "private data");
	read_name(&hello, name);
	if (*name) {
		printf("the client says: %s\n", name);
		welcome(req);
	} else {
		printf("a client without a name is turned away\n");
		must(rpma_conn_req_reject(&req, &why), "reject");
	}
	must(rpma_ep_shutdown(&ep), "stop listening");
	must(rpma_peer_delete(&peer), "delete the peer");
}

static void client(char **args)
{
	struct rpma_peer *peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_REMOTE);
	struct rpma_conn_private_data hello = text(args[2] ? args[2] : (char[]){""}), answer;
	char name[UINT8_MAX + 1];
	enum rpma_conn_event event;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;

	must(rpma_conn_req_new(peer, args[0], args[1], NULL, &req), args[0]);
	must(rpma_conn_req_connect(&req, &hello, &conn), "connect");
	/* The call only begins the connection. The first event shows whether the connection
	 * succeeded. */
	must(rpma_conn_next_event(conn, &event), "wait for the connection");
	printf("%s\n", rpma_utils_conn_event_2str(event));
	must(rpma_conn_get_private_data(conn, &answer), "private data");
	if (answer.len) {
		read_name(&answer, name);
		printf("the server says: %s\n", name);
	}
	if (event != RPMA_CONN_ESTABLISHED)
		exit(EXIT_FAILURE);

	must(rpma_conn_disconnect(conn), "disconnect");
	must(rpma_conn_next_event(conn, &event), "wait for the end");
	printf("%s\n", rpma_utils_conn_event_2str(event));
	must(rpma_conn_delete(&conn), "delete the connection");
	must(rpma_peer_delete(&peer), "delete the peer");
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {
		{"server", "ADDRESS PORT", server}, {"client", "ADDRESS PORT [NAME]", client}, {0}};

	return play(argc, argv, roles);
}
