/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpspm -- persistence by messages, with the help of the server's CPU.
 *
 * GPSPM, the "general purpose server persistency method", has no requirements for the server's
 * device or platform. The client writes, and then sends a message with a range. The server's
 * program makes the range durable with a system call, and answers. Use this method if persistent
 * flushes are refused (rpma_flush() returns RPMA_E_NOSUPP). The method costs time of the server's
 * CPU.
 */
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common.h"

#define REGION_SIZE (1 << 16)

/* Numbers on the wire are little-endian. */
struct range {
	uint64_t offset;
	uint64_t len;
};

struct result {
	uint64_t error; /* 0: the range is durable; otherwise an errno value */
};

static struct {
	struct range range;
	struct result result;
} box;
#define RANGE  offsetof(typeof(box), range)
#define RESULT offsetof(typeof(box), result)

/*
 * The client sent the message after its writes, on the same connection, so all bytes are in memory
 * now.
 */
static int flush_range(char *region, uint32_t msg_len)
{
	uint64_t offset = le64toh(box.range.offset), len = le64toh(box.range.len);
	uint64_t start = offset & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);

	/* The client may be any program, so check its numbers. */
	if (msg_len != sizeof(box.range) || len > REGION_SIZE || offset > REGION_SIZE - len)
		return EINVAL;
	/* A program with a mapping of real persistent memory calls pmem_persist(3) here. */
	return msync(region + start, offset - start + len, MS_SYNC) ? errno : 0;
}

static void answer_requests(struct rpma_conn *conn, struct rpma_mr_local *mr, char *region)
{
	struct rpma_cq *cq, *rcq;
	struct ibv_wc wc;

	must(rpma_conn_get_cq(conn, &cq), "completion queue");
	must(rpma_conn_get_rcq(conn, &rcq), "completion queue of receives");
	while ((wc = next_completion(rcq)).status == IBV_WC_SUCCESS) {
		int error = flush_range(region, wc.byte_len);

		printf("flush %ju bytes at %ju: %s\n", (uintmax_t)le64toh(box.range.len),
		       (uintmax_t)le64toh(box.range.offset), strerror(error));
		box.result.error = htole64((uint64_t)error);
		must(rpma_recv(conn, mr, RANGE, sizeof(box.range), NULL), "receive");
		must(rpma_send(conn, mr, RESULT, sizeof(box.result), RPMA_F_COMPLETION_ALWAYS,
			       NULL),
		     "send");
		await(cq, "send");
	}
	if (wc.status != IBV_WC_WR_FLUSH_ERR)
		errx(EXIT_FAILURE, "receive: %s", ibv_wc_status_str(wc.status));
}

static void server(char **args)
{
	char *region = map_file(args[2], REGION_SIZE);
	struct rpma_peer *peer = open_peer(args[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
	struct rpma_mr_local *file_mr, *mr;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn_req *req;
	struct rpma_conn *conn;
	struct rpma_ep *ep;

	/* No flush type: clients write to the region, and it becomes durable on request. */
	must(rpma_mr_reg(peer, region, REGION_SIZE, RPMA_MR_USAGE_WRITE_DST, &file_mr), "register");
	must(rpma_mr_reg(peer, &box, sizeof(box), RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr),
	     "register");
	ep = listen_at(peer, args[0], args[1]);
	must(rpma_conn_cfg_new(&cfg), "configure");
	must(rpma_conn_cfg_set_rcq_size(cfg, 10), "configure");
	must(rpma_ep_next_conn_req(ep, cfg, &req), "wait for a client");
	must(rpma_conn_req_recv(req, mr, RANGE, sizeof(box.range), NULL), "receive");
	conn = accept_request(&req, file_mr);
	if (!conn)
		exit(EXIT_FAILURE);
	answer_requests(conn, mr, region);
	see_off(&conn);

	rpma_conn_cfg_delete(&cfg);
	must(rpma_ep_shutdown(&ep), "stop listening");
	must(rpma_mr_dereg(&mr), "deregister");
	must(rpma_mr_dereg(&file_mr), "deregister");
	must(rpma_peer_delete(&peer), "delete the peer");
	munmap(region, REGION_SIZE);
}

/* Post the request after the writes, and wait for two completions: of the send and of the
 * receive. */
static int persist(struct session *s, struct rpma_mr_local *mr, size_t offset, size_t len)
{
	box.range = (struct range){.offset = htole64(offset), .len = htole64(len)};
	must(rpma_recv(s->conn, mr, RESULT, sizeof(box.result), NULL), "receive");
	must(rpma_send(s->conn, mr, RANGE, sizeof(box.range), RPMA_F_COMPLETION_ALWAYS, NULL),
	     "send");
	await(s->cq, "write and ask for the flush");
	await(s->cq, "write and ask for the flush");
	return (int)le64toh(box.result.error);
}

static void client(char **args)
{
	struct rpma_mr_local *src, *mr;
	size_t offset = strtoul(args[2], NULL, 0), len = strlen(args[3]);
	struct session s;
	int error;

	session_open(&s, args, NULL);
	session_take_offer(&s, offset + len);
	must(rpma_mr_reg(s.peer, args[3], len, RPMA_MR_USAGE_WRITE_SRC, &src), "register");
	must(rpma_mr_reg(s.peer, &box, sizeof(box), RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr),
	     "register");
	must(rpma_write(s.conn, s.region, offset, src, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL),
	     "write");
	error = persist(&s, mr, offset, len);
	if (error)
		errx(EXIT_FAILURE, "the server could not make it durable: %s", strerror(error));
	printf("durable: %zu bytes at %zu\n", len, offset);
	/* The server's kernel cannot flush beyond the end of the file, and the answer reports
	 * that. */
	printf("a range that is not there: %s\n", strerror(persist(&s, mr, REGION_SIZE, 1)));
	must(rpma_mr_dereg(&src), "deregister");
	session_close(&s, &mr);
}

int main(int argc, char **argv)
{
	static const struct role roles[] = {{"server", "ADDRESS PORT FILE", server},
					    {"client", "ADDRESS PORT OFFSET TEXT", client},
					    {0}};

	return play(argc, argv, roles);
}
