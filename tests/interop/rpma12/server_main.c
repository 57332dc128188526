/* SPDX-License-Identifier: BSD-3-Clause */
/* server_main.c -- arguments ADDRESS PORT FILE [srq]: serve one client (rpma12.h). */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/medium.h"
#include "rpma12.h"

static int file;
static struct rpma_srq *srq;

static uint8_t *map_file(const char *path)
{
	uint8_t *p;

	file = open(path, O_RDWR | O_CREAT, 0600);
	if (file < 0 || ftruncate(file, REGION))
		err(1, "%s", path);
	p = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

static void share_receives(struct end *e)
{
	struct rpma_srq_cfg *cfg;

	must(rpma_srq_cfg_new(&cfg), "configuration of the SRQ");
	must(rpma_srq_cfg_set_rq_size(cfg, SLOTS), "size of the SRQ");
	must(rpma_srq_cfg_set_rcq_size(cfg, 2 * SLOTS), "size of its CQ");
	must(rpma_srq_new(e->peer, cfg, &srq), "SRQ");
	must(rpma_srq_cfg_delete(&cfg), "delete the configuration");
	must(rpma_conn_cfg_set_srq(e->cfg, srq), "use the SRQ");
}

static void receive(struct end *e, struct rpma_conn_req *req, uintptr_t slot)
{
	void *context = (void *)slot;

	if (srq)
		must(rpma_srq_recv(srq, e->slots_mr, slot * SLOT, SLOT, context),
		     "post to the SRQ");
	else if (req)
		must(rpma_conn_req_recv(req, e->slots_mr, slot * SLOT, SLOT, context), "receive");
	else
		must(rpma_recv(e->conn, e->slots_mr, slot * SLOT, SLOT, context), "receive");
}

static void make_offer(struct end *e, struct offer *offer)
{
	struct rpma_peer_cfg *pcfg;
	size_t size;

	must(rpma_mr_get_descriptor_size(e->mr, &size), "size of a descriptor");
	offer->mr_size = (uint8_t)size;
	must(rpma_mr_get_descriptor(e->mr, offer->mr), "descriptor");
	must(rpma_peer_cfg_new(&pcfg), "peer configuration");
	must(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true), "direct write");
	must(rpma_peer_cfg_get_descriptor_size(pcfg, &size), "size of its descriptor");
	offer->pcfg_size = (uint8_t)size;
	must(rpma_peer_cfg_get_descriptor(pcfg, offer->pcfg), "its descriptor");
	must(rpma_peer_cfg_delete(&pcfg), "delete it");
}

static void accept_client(struct end *e, struct rpma_ep *ep)
{
	struct offer offer = {0};
	struct rpma_conn_private_data pdata_in, pdata = {&offer, sizeof(offer)};
	struct rpma_conn_req *req;

	must(rpma_ep_next_conn_req(ep, e->cfg, &req), "next request");
	must(rpma_conn_req_get_private_data(req, &pdata_in), "private data");
	if (pdata_in.len < PDATA_LEN || !is_filled(pdata_in.ptr, PDATA_LEN, 99))
		errx(1, "%u bytes of private data came and are wrong", pdata_in.len);
	make_offer(e, &offer);
	for (uintptr_t slot = 0; slot < SLOTS - 1; slot++)
		receive(e, req, slot);
	must(rpma_conn_req_connect(&req, &pdata, &e->conn), "accept");
	end_expect(e, RPMA_CONN_ESTABLISHED);
	must(rpma_conn_get_cq(e->conn, &e->cq), "CQ");
	must(srq ? rpma_srq_get_rcq(srq, &e->rcq) : rpma_conn_get_rcq(e->conn, &e->rcq),
	     "receive CQ");
}

static bool is_durable(const struct ask *ask)
{
	long dirty = medium_dirty(file, (off_t)ask->at, ask->len);

	if (dirty)
		warnx("%ld bytes of %llu at %llu are dirty behind a persistent flush", dirty,
		      (unsigned long long)ask->len, (unsigned long long)ask->at);
	return dirty == 0;
}

/* Check the bytes in memory, and the same bytes of the file as other processes read them. */
static bool check(const struct end *e, const struct ask *ask)
{
	static uint8_t copy[REGION];

	if (ask->what == ASK_DURABLE && !is_durable(ask))
		return false;
	return is_filled(e->region + ask->at, ask->len, ask->seed) &&
	       pread(file, copy, ask->len, (off_t)ask->at) == (ssize_t)ask->len &&
	       is_filled(copy, ask->len, ask->seed);
}

static void answer_one(struct end *e, const struct ibv_wc *wc)
{
	uint8_t *came = e->slots + wc->wr_id * SLOT, *out = e->slots + (SLOTS - 1) * SLOT;
	struct answer answer = {.opcode = wc->opcode, .len = wc->byte_len, .right = 1};
	struct ask ask;
	struct ibv_wc sent;

	memcpy(&ask, came, sizeof(ask));
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		answer.imm = ntohl(wc->imm_data);
	if (wc->opcode == IBV_WC_RECV && wc->byte_len == sizeof(ask) &&
	    (ask.what == ASK_CHECK || ask.what == ASK_DURABLE))
		answer.right = check(e, &ask);
	else if (wc->opcode == IBV_WC_RECV)
		answer.right = is_filled(came, wc->byte_len, answer.imm);
	receive(e, NULL, wc->wr_id);
	memcpy(out, &answer, sizeof(answer));
	must(rpma_send(e->conn, e->slots_mr, (SLOTS - 1) * SLOT, sizeof(answer),
		       RPMA_F_COMPLETION_ALWAYS, NULL),
	     "send");
	end_wait(e->cq, &sent);
	if (sent.status != IBV_WC_SUCCESS)
		errx(1, "the answer: %s", ibv_wc_status_str(sent.status));
}

/* Serve until the client disconnects. When the client disconnects, receives of a shared queue get
 * no completion. */
static void serve(struct end *e)
{
	struct ibv_wc wc;

	for (;;) {
		end_wait(e->rcq, &wc);
		if (wc.status != IBV_WC_SUCCESS)
			break;
		if (wc.opcode == IBV_WC_RECV && wc.byte_len == 1)
			break;
		answer_one(e, &wc);
	}
	end_expect(e, RPMA_CONN_CLOSED);
	must(rpma_conn_disconnect(e->conn), "disconnect");
}

int main(int argc, char **argv)
{
	struct end e = {0};
	struct rpma_ep *ep;

	if (argc < 4)
		errx(2, "ADDRESS PORT FILE [srq]");
	end_open(&e, argv[1], true, map_file(argv[3]),
		 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
			 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
	if (argc > 4)
		share_receives(&e);
	must(rpma_ep_listen(e.peer, argv[1], argv[2], &ep), "listen");
	accept_client(&e, ep);
	serve(&e);
	must(rpma_ep_shutdown(&ep), "stop listening");
	end_close(&e);
	if (srq)
		must(rpma_srq_delete(&srq), "delete the SRQ");
	must(rpma_peer_delete(&e.peer), "delete the peer");
	printf("server: all is well\n");
	return 0;
}
