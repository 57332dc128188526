/* SPDX-License-Identifier: BSD-3-Clause */
/* end.c -- code that both programs of a pair use. */
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

#define USAGE_ALL                                                                                  \
	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |               \
	 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)

void must(int ret, const char *what)
{
	if (ret)
		errx(1, "%s: %s", what, rpma_err_2str(ret));
}

void fill(uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i + (i >> 8) * 7 + (i >> 16) * 13 + seed * 101 + 1);
}

int is_filled(const uint8_t *p, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != (uint8_t)(i + (i >> 8) * 7 + (i >> 16) * 13 + seed * 101 + 1)) {
			warnx("byte %zu of %zu is %02x", i, len, p[i]);
			return 0;
		}
	return 1;
}

static uint8_t *end_map(size_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return p;
}

static struct rpma_mr_local *end_reg(struct end *e, uint8_t *p, size_t size, int usage)
{
	struct rpma_mr_local *mr;

	must(rpma_mr_reg(e->peer, p, size, usage, &mr), "register");
	return mr;
}

void end_open(struct end *e, const char *addr, const char *port, int is_server)
{
	struct ibv_context *ctx;

	memset(e, 0, sizeof(*e));
	e->addr = addr;
	e->port = port;
	e->is_server = is_server;
	must(rpma_utils_get_ibv_context(
		     addr, is_server ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE,
		     &ctx),
	     "device");
	printf("%s on device %s\n", is_server ? "server" : "client", ctx->device->name);
	must(rpma_peer_new(ctx, &e->peer), "peer");
	must(rpma_conn_cfg_new(&e->cfg), "configuration");
	e->region = end_map(PAIR_REGION);
	e->sink = end_map(PAIR_REGION);
	e->msg_in = end_map(PAIR_MSG_MAX);
	e->msg_out = end_map(2 * PAIR_MSG_MAX);
	e->mr = end_reg(e, e->region, PAIR_REGION, USAGE_ALL);
	e->read_only_mr = end_reg(e, e->region, PAIR_REGION, RPMA_MR_USAGE_READ_SRC);
	e->sink_mr = end_reg(e, e->sink, PAIR_REGION, USAGE_ALL);
	e->in_mr = end_reg(e, e->msg_in, PAIR_MSG_MAX, RPMA_MR_USAGE_RECV);
	e->out_mr = end_reg(e, e->msg_out, 2 * PAIR_MSG_MAX, RPMA_MR_USAGE_SEND);
	must(rpma_mr_get_descriptor_size(e->mr, &e->desc_size), "size of a descriptor");
	must(rpma_mr_get_descriptor(e->mr, e->self.region), "descriptor");
	must(rpma_mr_get_descriptor(e->read_only_mr, e->self.read_only), "descriptor");
}

void end_close(struct end *e)
{
	must(rpma_conn_delete(&e->conn), "delete the connection");
	must(rpma_mr_dereg(&e->mr), "deregister");
	must(rpma_mr_dereg(&e->read_only_mr), "deregister");
	must(rpma_mr_dereg(&e->sink_mr), "deregister");
	must(rpma_mr_dereg(&e->in_mr), "deregister");
	must(rpma_mr_dereg(&e->out_mr), "deregister");
	must(rpma_conn_cfg_delete(&e->cfg), "delete the configuration");
	must(rpma_peer_delete(&e->peer), "delete the peer");
}

void end_expect(struct end *e, enum rpma_conn_event want)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	must(rpma_conn_next_event(e->conn, &event), "next event");
	if (event != want)
		errx(1, "event \"%s\", not \"%s\"", rpma_utils_conn_event_2str(event),
		     rpma_utils_conn_event_2str(want));
}

void end_connected(struct end *e)
{
	end_expect(e, RPMA_CONN_ESTABLISHED);
	must(rpma_conn_get_cq(e->conn, &e->cq), "completion queue");
}

/* When siw accepts a connection, it replies before it receives. An FPDU that arrives between these
 * two steps is not processed until the next FPDU arrives (doc/wire.md), so send an empty Write. */
static void end_wake_peer(struct end *e)
{
	printf("nothing came for %d ms: the peer is sent an empty Write\n", PAIR_QUIET_MS);
	must(rpma_write(e->conn, NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR, e),
	     "an empty write");
}

/* A client wakes the peer if no message arrives for some time, because its last message is possibly
 * the first FPDU of the connection. */
static void end_wait_for_peer(struct end *e, int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (!e->is_server && poll(&p, 1, PAIR_QUIET_MS) == 0)
		end_wake_peer(e);
}

static void end_wait_wc(struct end *e)
{
	int fd;

	must(rpma_cq_get_fd(e->cq, &fd), "descriptor of the completion queue");
	end_wait_for_peer(e, fd);
}

void end_next_wc(struct end *e, struct ibv_wc *wc)
{
	int ret;

	while ((ret = rpma_cq_get_wc(e->cq, 1, wc, NULL)) == RPMA_E_NO_COMPLETION) {
		end_wait_wc(e);
		ret = rpma_cq_wait(e->cq);
		if (ret && ret != RPMA_E_NO_COMPLETION)
			break;
	}
	must(ret, "completion");
}

void end_expect_wc(struct end *e, enum ibv_wc_opcode opcode, size_t len)
{
	struct ibv_wc wc = {0};

	do /* do not wait for the completion of an answer, which can be late */
		end_next_wc(e, &wc);
	while (wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_SEND && opcode != IBV_WC_SEND);
	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "a completion failed: %s", ibv_wc_status_str(wc.status));
	if (wc.opcode != opcode)
		errx(1, "opcode %d completed, not %d", wc.opcode, opcode);
	if (opcode == IBV_WC_RECV && len && wc.byte_len != len)
		errx(1, "%u bytes came, not %zu", wc.byte_len, len);
}

void end_receive(struct end *e)
{
	must(rpma_recv(e->conn, e->in_mr, 0, PAIR_MSG_MAX, e), "post a receive");
}

void end_send(struct end *e, const struct ask_msg *m, size_t len)
{
	memcpy(e->msg_out, m, sizeof(*m));
	must(rpma_send(e->conn, e->out_mr, 0, len, RPMA_F_COMPLETION_ALWAYS, e), "send");
}

void end_expect_left(struct end *e)
{
	int fd;

	must(rpma_conn_get_event_fd(e->conn, &fd), "descriptor of the events");
	end_wait_for_peer(e, fd);
	end_expect(e, RPMA_CONN_CLOSED);
}

static struct rpma_mr_remote *end_remote(struct end *e, const uint8_t *desc)
{
	struct rpma_mr_remote *r;

	must(rpma_mr_remote_from_descriptor(desc, e->desc_size, &r), "descriptor");
	return r;
}

/*
 * Flush for visibility, in the form in which this implementation sends such a flush to this peer.
 */
static void end_flush(struct end *e, struct rpma_mr_remote *r, uint64_t at, uint64_t len)
{
	struct ibv_wc wc = {0};

	must(rpma_flush(e->conn, r, at, len, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS,
			e),
	     "flush");
	end_next_wc(e, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		errx(1, "the flush failed: %s", ibv_wc_status_str(wc.status));
}

void do_write(struct end *e, const uint8_t *desc, uint64_t at, uint64_t len, uint32_t seed)
{
	struct rpma_mr_remote *r = end_remote(e, desc);

	fill(e->sink + at, len, seed);
	must(rpma_write(e->conn, r, at, e->sink_mr, at, len, RPMA_F_COMPLETION_ALWAYS, e), "write");
	end_expect_wc(e, IBV_WC_RDMA_WRITE, 0);
	end_flush(e, r, at, len);
	must(rpma_mr_remote_delete(&r), "forget");
}

void do_read(struct end *e, const uint8_t *desc, uint64_t at, uint64_t len, uint32_t seed)
{
	struct rpma_mr_remote *r = end_remote(e, desc);

	memset(e->sink + at, 0, len);
	must(rpma_read(e->conn, e->sink_mr, at, r, at, len, RPMA_F_COMPLETION_ALWAYS, e), "read");
	end_expect_wc(e, IBV_WC_RDMA_READ, 0);
	if (!is_filled(e->sink + at, len, seed))
		errx(1, "what was read is not what is there");
	must(rpma_mr_remote_delete(&r), "forget");
}

/* librpma's descriptor has address (8 bytes), size (8), key (4) and usage (1), all
 * little-endian. */
static void end_post_mistake(struct end *e, const struct ask_msg *other, enum mistake m)
{
	struct rpma_mr_remote *r;
	uint8_t desc[PAIR_DESC];

	memcpy(desc, other->region, sizeof(desc));
	if (m == MISTAKE_BOUNDS)
		desc[8 + 4] = 1; /* claim 4 GiB more than the region has */
	if (m == MISTAKE_KEY)
		desc[16 + 2] ^= 0x55;
	if (m == MISTAKE_RIGHT) {
		memcpy(desc, other->read_only, sizeof(desc));
		/* otherwise librpma at this end refuses the Write */
		desc[20] |= RPMA_MR_USAGE_WRITE_DST;
	}
	r = end_remote(e, desc);
	if (m == MISTAKE_LENGTH)
		must(rpma_send(e->conn, e->out_mr, 0, PAIR_MSG_MAX + 8, RPMA_F_COMPLETION_ALWAYS,
			       e),
		     "send");
	else
		must(rpma_write(e->conn, r, m == MISTAKE_RIGHT ? 0 : PAIR_REGION - 4, e->sink_mr, 0,
				8, RPMA_F_COMPLETION_ALWAYS, e),
		     "write");
	must(rpma_mr_remote_delete(&r), "forget");
}

/* Post receives only until the connection's end is reported: a receive that is posted while siw's
 * queue pair ends never completes (doc/wire.md). */
static void end_show_failures(struct end *e)
{
	struct ibv_wc wc = {0};
	int ret;

	for (int ms = 0; ms < 2000; ms += !!ret) {
		ret = rpma_cq_get_wc(e->cq, 1, &wc, NULL);
		if (ret)
			usleep(1000);
		if (ret || wc.status == IBV_WC_SUCCESS)
			continue;
		printf("failed: %s, vendor_err 0x%x\n", ibv_wc_status_str(wc.status),
		       wc.vendor_err);
		return;
	}
	printf("nothing failed\n");
}

void expect_loss(struct end *e)
{
	enum rpma_conn_event event = RPMA_CONN_UNDEFINED;

	must(rpma_conn_next_event(e->conn, &event), "next event");
	end_show_failures(e);
	printf("the connection ended: %s\n", rpma_utils_conn_event_2str(event));
	rpma_conn_disconnect(e->conn);
}

void make_mistake(struct end *e, const struct ask_msg *other, enum mistake m)
{
	end_post_mistake(e, other, m);
	expect_loss(e);
}
