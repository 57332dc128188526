/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * invalidate_main.c -- server|client ADDRESS PORT: the server sends the keys of two regions. The
 * client writes to both and invalidates one by Send with Invalidate, the other by Send with
 * Solicited Event and Invalidate. Then the client writes to the first region again, which must fail
 * and must not change the region.
 */
#include <err.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REGIONS 2
#define SIZE    4096

/* With the software RNIC a region can be invalidated only if it was registered with this flag
 * (softrnic(7)); siw needs no flag. */
#define SOFTRNIC_VENDOR_ID            0x50524d41u
#define VEXT_ACCESS_REMOTE_INVALIDATE (1 << 30)

/* The server's private data, in the byte order of little-endian hosts only. */
struct keys {
	uint64_t addr[REGIONS];
	uint32_t rkey[REGIONS];
};

struct side {
	struct rdma_cm_id *listener, *id;
	uint8_t region[REGIONS][SIZE], out[SIZE], in[SIZE];
	struct ibv_mr *region_mr[REGIONS], *out_mr, *in_mr;
};

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static struct rdma_cm_id *endpoint(const char *addr, const char *port, int flags)
{
	struct rdma_addrinfo hints = {.ai_flags = flags | RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP};
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_addrinfo *res;
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(addr, port, &hints, &res) || rdma_create_ep(&id, res, NULL, &attr))
		err(1, "endpoint %s:%s", addr, port);
	rdma_freeaddrinfo(res);
	return id;
}

static void receive(struct side *s)
{
	if (rdma_post_recv(s->id, s, s->in, SIZE, s->in_mr))
		err(1, "post a receive");
}

static void open_memory(struct side *s)
{
	printf("on device %s\n", s->id->verbs->device->name);
	s->out_mr = rdma_reg_msgs(s->id, s->out, SIZE);
	s->in_mr = rdma_reg_msgs(s->id, s->in, SIZE);
	if (!s->out_mr || !s->in_mr)
		err(1, "register");
	receive(s);
}

/* Wait for the next completion of a receive, or of another operation, depending on opcode. */
static void await(struct side *s, enum ibv_wc_opcode opcode, struct ibv_wc *wc)
{
	int ret = opcode == IBV_WC_RECV ? rdma_get_recv_comp(s->id, wc)
					: rdma_get_send_comp(s->id, wc);

	if (ret != 1 || wc->status != IBV_WC_SUCCESS || wc->opcode != opcode)
		errx(1, "instead of completion %d: %s", opcode,
		     ret == 1 ? ibv_wc_status_str(wc->status) : "none");
}

static void say(struct side *s, char what)
{
	struct ibv_wc wc;

	s->out[0] = (uint8_t)what;
	if (rdma_post_send(s->id, s, s->out, 1, s->out_mr, 0))
		err(1, "send");
	await(s, IBV_WC_SEND, &wc);
}

static void hear(struct side *s, char what)
{
	struct ibv_wc wc;

	await(s, IBV_WC_RECV, &wc);
	if (s->in[0] != (uint8_t)what)
		errx(1, "message %c instead of %c", s->in[0], what);
	receive(s);
}

/* Expect that the outstanding operations fail. */
static void expect_loss(struct side *s)
{
	struct ibv_wc wc;

	if (rdma_get_recv_comp(s->id, &wc) != 1 || wc.status == IBV_WC_SUCCESS)
		errx(1, "the connection lives");
	printf("lost: %s\n", ibv_wc_status_str(wc.status));
}

static int is_filled(const uint8_t *p, uint8_t with)
{
	for (size_t i = 0; i < SIZE; i++)
		if (p[i] != with)
			return 0;
	return 1;
}

static void serve_region(struct side *s, unsigned i)
{
	struct ibv_wc wc = {0};

	await(s, IBV_WC_RECV, &wc);
	if (!is_filled(s->region[i], (uint8_t)(i + 1)))
		errx(1, "region %u was not written", i);
	printf("region %u: invalidation %s\n", i,
	       !(wc.wc_flags & IBV_WC_WITH_INV)               ? "not told"
	       : wc.invalidated_rkey == s->region_mr[i]->rkey ? "told"
							      : "of another key told");
	receive(s);
	say(s, 'n');
}

static struct ibv_mr *register_lent(struct side *s, unsigned i)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_device_attr attr;

	if (ibv_query_device(s->id->verbs, &attr))
		err(1, "query the device");
	if (attr.vendor_id == SOFTRNIC_VENDOR_ID)
		access |= VEXT_ACCESS_REMOTE_INVALIDATE;
	return ibv_reg_mr(s->id->pd, s->region[i], SIZE, access);
}

static void accept_with_keys(struct side *s)
{
	struct keys keys;
	struct rdma_conn_param param = {.private_data = &keys,
					.private_data_len = sizeof(keys),
					.responder_resources = 1,
					.initiator_depth = 1};

	for (unsigned i = 0; i < REGIONS; i++) {
		s->region_mr[i] = register_lent(s, i);
		if (!s->region_mr[i])
			err(1, "register");
		keys.addr[i] = (uintptr_t)s->region[i];
		keys.rkey[i] = s->region_mr[i]->rkey;
	}
	if (rdma_accept(s->id, &param))
		err(1, "accept");
}

static void server(struct side *s, const char *addr, const char *port)
{
	s->listener = endpoint(addr, port, RAI_PASSIVE);
	if (rdma_listen(s->listener, 1))
		err(1, "listen");
	printf("listening\n");
	if (rdma_get_request(s->listener, &s->id))
		err(1, "next request");
	open_memory(s);
	accept_with_keys(s);
	for (unsigned i = 0; i < REGIONS; i++)
		serve_region(s, i);
	expect_loss(s);
	if (!is_filled(s->region[0], 1))
		errx(1, "an invalidated key was good for writing");
}

static void write_region(struct side *s, const struct keys *keys, unsigned i, uint8_t with)
{
	memset(s->out, with, SIZE);
	if (rdma_post_write(s->id, s, s->out, SIZE, s->out_mr, 0, keys->addr[i], keys->rkey[i]))
		err(1, "write");
}

/*
 * Invalidate a region by a Send with Invalidate, plain or with solicited event: opcodes 4 and 6 of
 * RFC 5040. libsiw takes the key from the field that Writes use (doc/wire.md).
 */
static void invalidate(struct side *s, uint32_t rkey, int solicited)
{
	struct ibv_sge sge = {(uintptr_t)s->out, 1, s->out_mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND_WITH_INV,
				 .send_flags =
					 IBV_SEND_SIGNALED | (solicited ? IBV_SEND_SOLICITED : 0),
				 .invalidate_rkey = rkey,
				 .wr.rdma.rkey = rkey},
			   *bad;
	struct ibv_wc wc;
	int ret = ibv_post_send(s->id->qp, &wr, &bad);

	if (ret)
		errx(3, "Send with Invalidate is refused: %s", strerror(ret));
	await(s, IBV_WC_SEND, &wc);
}

static void client(struct side *s, const char *addr, const char *port)
{
	struct rdma_conn_param param = {.responder_resources = 1, .initiator_depth = 1};
	struct keys keys;
	struct ibv_wc wc;

	s->id = endpoint(addr, port, 0);
	open_memory(s);
	if (rdma_connect(s->id, &param))
		err(1, "connect");
	memcpy(&keys, s->id->event->param.conn.private_data, sizeof(keys));
	for (unsigned i = 0; i < REGIONS; i++) {
		write_region(s, &keys, i, (uint8_t)(i + 1));
		await(s, IBV_WC_RDMA_WRITE, &wc);
		invalidate(s, keys.rkey[i], i % 2);
		hear(s, 'n');
	}
	write_region(s, &keys, 0, 0x55);
	expect_loss(s);
}

int main(int argc, char **argv)
{
	static struct side s;

	if (argc != 4)
		errx(2, "server|client ADDRESS PORT");
	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(100);
	if (!strcmp(argv[1], "server"))
		server(&s, argv[2], argv[3]);
	else
		client(&s, argv[2], argv[3]);
	printf("%s: all is well\n", argv[1]);
	return 0;
}
