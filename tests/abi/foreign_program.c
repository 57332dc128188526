/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * foreign_program.c -- compiled with the distribution's librpma.h and linked to its library, then
 * run with this project's library. One thread has both sides of a connection, and writes, flushes
 * and reads back.
 *
 * foreign_program LIBRARY: the program fails unless the loader has loaded LIBRARY.
 */
#include <dlfcn.h>
#include <librpma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDR "127.0.0.1"
#define TEXT "written by a stranger"

enum { SIZE = 4096, BACK = 2048 };

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int ret_ = (call);                                                                 \
		if (ret_) {                                                                        \
			fprintf(stderr, "%s: %s\n", #call, rpma_err_2str(ret_));                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static char target[SIZE], source[SIZE];

static void expect_loaded(const char *library)
{
	char wanted[4096], found[4096];
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)rpma_err_2str, &info) || !realpath(library, wanted) ||
	    !realpath(info.dli_fname, found) || strcmp(wanted, found)) {
		fprintf(stderr, "%s was not loaded\n", library);
		exit(1);
	}
}

/* Listen on a free port. */
static struct rpma_ep *listen_somewhere(struct rpma_peer *peer, char *port, size_t len)
{
	struct rpma_ep *ep = NULL;
	int ret = RPMA_E_UNKNOWN;

	for (int i = 0; i < 50 && ret; i++) {
		snprintf(port, len, "%d", 20000 + (getpid() + i * 7) % 10000);
		ret = rpma_ep_listen(peer, ADDR, port, &ep);
	}
	CHECK(ret);
	return ep;
}

static void expect_event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	CHECK(rpma_conn_next_event(conn, &event));
	if (event != wanted) {
		fprintf(stderr, "%s\n", rpma_utils_conn_event_2str(event));
		exit(1);
	}
}

static void wait_for(struct rpma_conn *conn)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc wc;

	CHECK(rpma_conn_get_cq(conn, &cq));
	CHECK(rpma_cq_wait(cq));
	CHECK(rpma_cq_get_wc(cq, 1, &wc, NULL));
	CHECK(wc.status != IBV_WC_SUCCESS);
}

/* The target's answer carries its region's descriptor as private data. */
static void connect_both(struct rpma_peer *peer, struct rpma_mr_local *mr,
			 struct rpma_conn **active, struct rpma_conn **passive)
{
	struct rpma_conn_private_data pdata;
	struct rpma_conn_req *out = NULL, *in = NULL;
	unsigned char desc[64];
	size_t size = 0;
	char port[8];
	struct rpma_ep *ep = listen_somewhere(peer, port, sizeof(port));

	CHECK(rpma_mr_get_descriptor_size(mr, &size));
	CHECK(rpma_mr_get_descriptor(mr, desc));
	pdata.ptr = desc;
	pdata.len = (uint8_t)size;
	CHECK(rpma_conn_req_new(peer, ADDR, port, NULL, &out));
	CHECK(rpma_conn_req_connect(&out, NULL, active));
	CHECK(rpma_ep_next_conn_req(ep, NULL, &in));
	CHECK(rpma_conn_req_connect(&in, &pdata, passive));
	expect_event(*active, RPMA_CONN_ESTABLISHED);
	expect_event(*passive, RPMA_CONN_ESTABLISHED);
	CHECK(rpma_ep_shutdown(&ep));
}

static void write_flush_and_read_back(struct rpma_conn *conn, struct rpma_mr_local *mr)
{
	struct rpma_conn_private_data pdata;
	struct rpma_mr_remote *remote = NULL;

	CHECK(rpma_conn_get_private_data(conn, &pdata));
	CHECK(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &remote));
	strcpy(source, TEXT);
	CHECK(rpma_write(conn, remote, 0, mr, 0, sizeof(TEXT), RPMA_F_COMPLETION_ON_ERROR, NULL));
	CHECK(rpma_flush(conn, remote, 0, sizeof(TEXT), RPMA_FLUSH_TYPE_VISIBILITY,
			 RPMA_F_COMPLETION_ALWAYS, NULL));
	wait_for(conn);
	CHECK(strcmp(target, TEXT) != 0);
	CHECK(rpma_read(conn, mr, BACK, remote, 0, sizeof(TEXT), RPMA_F_COMPLETION_ALWAYS, NULL));
	wait_for(conn);
	CHECK(strcmp(source + BACK, TEXT) != 0);
	CHECK(rpma_mr_remote_delete(&remote));
}

int main(int argc, char **argv)
{
	struct rpma_mr_local *target_mr = NULL, *source_mr = NULL;
	struct rpma_conn *active = NULL, *passive = NULL;
	struct ibv_context *ctx = NULL;
	struct rpma_peer *peer = NULL;

	if (argc != 2)
		return 2;
	expect_loaded(argv[1]);
	CHECK(rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	CHECK(rpma_peer_new(ctx, &peer));
	CHECK(rpma_mr_reg(peer, target, SIZE,
			  RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
				  RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
			  &target_mr));
	CHECK(rpma_mr_reg(peer, source, SIZE, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
			  &source_mr));
	connect_both(peer, target_mr, &active, &passive);
	write_flush_and_read_back(active, source_mr);
	CHECK(rpma_conn_disconnect(active));
	expect_event(active, RPMA_CONN_CLOSED);
	expect_event(passive, RPMA_CONN_CLOSED);
	CHECK(rpma_conn_delete(&active));
	CHECK(rpma_conn_delete(&passive));
	CHECK(rpma_mr_dereg(&source_mr));
	CHECK(rpma_mr_dereg(&target_mr));
	CHECK(rpma_peer_delete(&peer));
	return 0;
}
