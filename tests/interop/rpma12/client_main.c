/* SPDX-License-Identifier: BSD-3-Clause */
/* client_main.c -- arguments ADDRESS PORT: make every operation of librpma 1.2 (rpma12.h). */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rpma12.h"

static struct rpma_mr_remote *remote;

static uint8_t *map_memory(void)
{
	uint8_t *p = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

static void take_offer(struct end *e)
{
	struct rpma_conn_private_data pdata;
	struct rpma_peer_cfg *pcfg;
	struct offer offer;

	must(rpma_conn_get_private_data(e->conn, &pdata), "private data");
	if (pdata.len < sizeof(offer))
		errx(1, "the offer has %u bytes", pdata.len);
	memcpy(&offer, pdata.ptr, sizeof(offer));
	must(rpma_mr_remote_from_descriptor(offer.mr, offer.mr_size, &remote), "remote memory");
	must(rpma_peer_cfg_from_descriptor(offer.pcfg, offer.pcfg_size, &pcfg),
	     "peer configuration");
	must(rpma_conn_apply_remote_peer_cfg(e->conn, pcfg), "apply it");
	must(rpma_peer_cfg_delete(&pcfg), "delete it");
}

static void connect_to(struct end *e, const char *addr, const char *port)
{
	uint8_t bytes[PDATA_LEN];
	struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
	struct rpma_conn_req *req;

	fill(bytes, sizeof(bytes), 99);
	must(rpma_conn_req_new(e->peer, addr, port, e->cfg, &req), "request");
	for (uintptr_t slot = 0; slot < SLOTS - 1; slot++)
		must(rpma_conn_req_recv(req, e->slots_mr, slot * SLOT, SLOT, (void *)slot),
		     "receive");
	must(rpma_conn_req_connect(&req, &pdata, &e->conn), "connect");
	end_expect(e, RPMA_CONN_ESTABLISHED);
	must(rpma_conn_get_cq(e->conn, &e->cq), "CQ");
	must(rpma_conn_get_rcq(e->conn, &e->rcq), "receive CQ");
	take_offer(e);
}

/* ANY: the opcode depends on the library. A flush is sent as a read or as a flush message, an
 * atomic write natively or as a plain write. */
enum { ANY = -1 };
static void completes(struct end *e, int opcode, const char *what)
{
	struct ibv_wc wc;

	end_wait(e->cq, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "%s: %s", what, ibv_wc_status_str(wc.status));
	if (opcode != ANY && (int)wc.opcode != opcode)
		errx(1, "%s: opcode %d, not %d", what, wc.opcode, opcode);
}

static void answered(struct end *e, uint32_t opcode, uint32_t imm, uint32_t len, const char *what)
{
	struct answer answer;
	struct ibv_wc wc;

	end_wait(e->rcq, &wc);
	if (wc.status != IBV_WC_SUCCESS || wc.byte_len != sizeof(answer))
		errx(1, "%s: %s, %u bytes", what, ibv_wc_status_str(wc.status), wc.byte_len);
	memcpy(&answer, e->slots + wc.wr_id * SLOT, sizeof(answer));
	must(rpma_recv(e->conn, e->slots_mr, wc.wr_id * SLOT, SLOT, (void *)(uintptr_t)wc.wr_id),
	     "receive");
	if (!answer.right || answer.opcode != opcode || answer.imm != imm || answer.len != len)
		errx(1, "%s: opcode %u, immediate %#x, %u bytes, %s", what, answer.opcode,
		     answer.imm, answer.len, answer.right ? "right" : "wrong");
}

static uint8_t *sending(struct end *e)
{
	return e->slots + (SLOTS - 1) * SLOT;
}

static void server_has(struct end *e, uint32_t what, uint64_t at, uint64_t len, uint32_t seed)
{
	struct ask ask = {.what = what, .seed = seed, .at = at, .len = len};

	memcpy(sending(e), &ask, sizeof(ask));
	must(rpma_send(e->conn, e->slots_mr, (SLOTS - 1) * SLOT, sizeof(ask),
		       RPMA_F_COMPLETION_ALWAYS, NULL),
	     "send");
	completes(e, IBV_WC_SEND, "send");
	answered(e, IBV_WC_RECV, 0, sizeof(ask), "what the server has");
}

static void write_and_flush(struct end *e, enum rpma_flush_type type, size_t at, size_t len,
			    uint32_t seed)
{
	fill(e->region, len, seed);
	must(rpma_write(e->conn, remote, at, e->mr, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL),
	     "write");
	must(rpma_flush(e->conn, remote, at, len, type, RPMA_F_COMPLETION_ALWAYS, NULL), "flush");
	completes(e, ANY, "flush");
	server_has(e, type == RPMA_FLUSH_TYPE_PERSISTENT ? ASK_DURABLE : ASK_CHECK, at, len, seed);
}

static void read_back(struct end *e, size_t at, size_t len, uint32_t seed)
{
	memset(e->region, 0, len);
	must(rpma_read(e->conn, e->mr, 0, remote, at, len, RPMA_F_COMPLETION_ALWAYS, NULL), "read");
	completes(e, IBV_WC_RDMA_READ, "read");
	if (!is_filled(e->region, len, seed))
		errx(1, "%zu bytes at %zu are read otherwise", len, at);
}

static void write_atomically(struct end *e, size_t at, uint32_t seed)
{
	char word[8];

	fill((uint8_t *)word, sizeof(word), seed);
	must(rpma_atomic_write(e->conn, remote, at, word, RPMA_F_COMPLETION_ALWAYS, NULL),
	     "atomic write");
	completes(e, ANY, "atomic write");
	must(rpma_flush(e->conn, remote, at, sizeof(word), RPMA_FLUSH_TYPE_PERSISTENT,
			RPMA_F_COMPLETION_ALWAYS, NULL),
	     "flush");
	completes(e, ANY, "flush");
	server_has(e, ASK_DURABLE, at, sizeof(word), seed);
}

static void send_messages(struct end *e, size_t len, uint32_t imm)
{
	fill(sending(e), len, 0);
	must(rpma_send(e->conn, e->slots_mr, (SLOTS - 1) * SLOT, len, RPMA_F_COMPLETION_ALWAYS,
		       NULL),
	     "send");
	completes(e, IBV_WC_SEND, "send");
	answered(e, IBV_WC_RECV, 0, (uint32_t)len, "send");
	fill(sending(e), len, imm);
	must(rpma_send_with_imm(e->conn, e->slots_mr, (SLOTS - 1) * SLOT, len,
				RPMA_F_COMPLETION_ALWAYS, imm, NULL),
	     "send with immediate");
	completes(e, IBV_WC_SEND, "send with immediate");
	answered(e, IBV_WC_RECV, imm, (uint32_t)len, "send with immediate");
}

static void write_with_immediate(struct end *e, size_t at, size_t len, uint32_t imm)
{
	fill(e->region, len, imm);
	must(rpma_write_with_imm(e->conn, remote, at, e->mr, 0, len, RPMA_F_COMPLETION_ALWAYS, imm,
				 NULL),
	     "write with immediate");
	completes(e, IBV_WC_RDMA_WRITE, "write with immediate");
	answered(e, IBV_WC_RECV_RDMA_WITH_IMM, imm, (uint32_t)len, "write with immediate");
	server_has(e, ASK_CHECK, at, len, imm);
}

/* Send the last message, which has one byte. */
static void leave(struct end *e)
{
	must(rpma_send(e->conn, e->slots_mr, (SLOTS - 1) * SLOT, 1, RPMA_F_COMPLETION_ALWAYS, NULL),
	     "send");
	completes(e, IBV_WC_SEND, "send");
	must(rpma_conn_disconnect(e->conn), "disconnect");
	end_expect(e, RPMA_CONN_CLOSED);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1, 8, 511, 4096, 100000, REGION - 8};
	struct end e = {0};

	if (argc < 3)
		errx(2, "ADDRESS PORT");
	end_open(&e, argv[1], false, map_memory(),
		 RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST);
	connect_to(&e, argv[1], argv[2]);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		write_and_flush(&e, RPMA_FLUSH_TYPE_VISIBILITY, i, sizes[i], i);
		write_and_flush(&e, RPMA_FLUSH_TYPE_PERSISTENT, 8, sizes[i], i + 20);
		read_back(&e, 8, sizes[i], i + 20);
		write_with_immediate(&e, 0, sizes[i], i + 0x1234500);
	}
	for (uint32_t i = 0; i < 3; i++)
		write_atomically(&e, 8 * i, i + 50);
	send_messages(&e, 2, 0xfeedbeef);
	send_messages(&e, SLOT, 7);
	leave(&e);
	must(rpma_mr_remote_delete(&remote), "forget the remote memory");
	end_close(&e);
	must(rpma_peer_delete(&e.peer), "delete the peer");
	printf("client: all is well\n");
	return 0;
}
