/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include <sys/mman.h>

#define USAGE_ALL                                                                                  \
	(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |               \
	 RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |                           \
	 RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV)

static const struct ends_opts no_opts;

const char *ends_addr(void)
{
	const char *env = getenv("ENDS_ADDR");

	return env ? env : "127.0.0.1";
}

static const char *ends_opts_addr(const struct ends_opts *opts)
{
	return opts->addr ? opts->addr : ends_addr();
}

void ends_free_port(char port[8])
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	snprintf(port, 8, "%u", (unsigned)ntohs(sin.sin_port));
	close(fd);
}

void ends_listen(struct ends *d, const struct ends_opts *opts)
{
	struct ibv_context *ctx;
	int ret = RPMA_E_PROVIDER;

	if (!opts)
		opts = &no_opts;
	OK(rpma_utils_get_ibv_context(ends_opts_addr(opts), RPMA_UTIL_IBV_CONTEXT_LOCAL, &ctx));
	OK(rpma_peer_new(ctx, &d->peer));
	/* Another process can take the port before this process listens. If so, choose another
	 * port. */
	for (int i = 0; ret && i < 10; i++) {
		ends_free_port(d->port);
		ret = rpma_ep_listen(d->peer, ends_opts_addr(opts), d->port, &d->ep);
	}
	OK(ret);
}

void ends_expect_event(struct rpma_conn *conn, enum rpma_conn_event want)
{
	enum rpma_conn_event ev = RPMA_CONN_UNDEFINED;

	OK(rpma_conn_next_event(conn, &ev));
	if (ev != want)
		fail_msg("expected \"%s\", got \"%s\"", rpma_utils_conn_event_2str(want),
			 rpma_utils_conn_event_2str(ev));
}

void ends_connect(struct ends *d, const struct ends_opts *opts, struct rpma_conn **cli,
		  struct rpma_conn **srv)
{
	struct rpma_conn_req *req;

	if (!opts)
		opts = &no_opts;
	OK(rpma_conn_req_new(d->peer, ends_opts_addr(opts), d->port, opts->cli_cfg, &req));
	if (opts->before_connect)
		opts->before_connect(d, req, 0);
	OK(rpma_conn_req_connect(&req, opts->cli_pdata, cli));
	OK(rpma_ep_next_conn_req(d->ep, opts->srv_cfg, &req));
	if (opts->before_connect)
		opts->before_connect(d, req, 1);
	OK(rpma_conn_req_connect(&req, opts->srv_pdata, srv));
	ends_expect_event(*cli, RPMA_CONN_ESTABLISHED);
	ends_expect_event(*srv, RPMA_CONN_ESTABLISHED);
}

struct rpma_mr_remote *ends_remote(const struct rpma_mr_local *mr)
{
	struct rpma_mr_remote *remote;
	uint8_t desc[64];
	size_t size;

	OK(rpma_mr_get_descriptor_size(mr, &size));
	assert_true(size <= sizeof(desc));
	OK(rpma_mr_get_descriptor(mr, desc));
	OK(rpma_mr_remote_from_descriptor(desc, size, &remote));
	return remote;
}

struct rpma_mr_local *ends_reg(struct ends *d, void *ptr, size_t size)
{
	struct rpma_mr_local *mr;

	OK(rpma_mr_reg(d->peer, ptr, size, USAGE_ALL, &mr));
	return mr;
}

void ends_open(struct ends *d, const struct ends_opts *opts)
{
	size_t size = opts && opts->buf_size ? opts->buf_size : ENDS_BUF;

	memset(d, 0, sizeof(*d));
	ends_listen(d, opts);
	d->cli_buf = ends_map(size);
	d->srv_buf = ends_map(size);
	d->cli_mr = ends_reg(d, d->cli_buf, size);
	d->srv_mr = ends_reg(d, d->srv_buf, size);
	d->at_srv = ends_remote(d->srv_mr);
	d->at_cli = ends_remote(d->cli_mr);
	ends_connect(d, opts, &d->cli, &d->srv);
}

void ends_close(struct ends *d)
{
	size_t size = 0;

	if (d->cli)
		OK(rpma_conn_disconnect(d->cli));
	OK(rpma_conn_delete(&d->cli));
	OK(rpma_conn_delete(&d->srv));
	OK(rpma_mr_remote_delete(&d->at_srv));
	OK(rpma_mr_remote_delete(&d->at_cli));
	if (d->cli_mr)
		OK(rpma_mr_get_size(d->cli_mr, &size));
	OK(rpma_mr_dereg(&d->cli_mr));
	OK(rpma_mr_dereg(&d->srv_mr));
	OK(rpma_ep_shutdown(&d->ep));
	OK(rpma_peer_delete(&d->peer));
	if (size) {
		munmap(d->cli_buf, size);
		munmap(d->srv_buf, size);
	}
}

void ends_cq_wait_wc(struct rpma_cq *cq, struct ibv_wc *wc)
{
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, wc, NULL)) == RPMA_E_NO_COMPLETION)
		OK(rpma_cq_wait(cq));
	OK(ret);
}

void ends_wait_wc(struct rpma_conn *conn, struct ibv_wc *wc)
{
	struct rpma_cq *cq;

	OK(rpma_conn_get_cq(conn, &cq));
	ends_cq_wait_wc(cq, wc);
}

void ends_expect_wc(struct rpma_conn *conn, enum ibv_wc_opcode opcode, const void *op_context)
{
	struct ibv_wc wc = {0};

	ends_wait_wc(conn, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("completion failed: %s", ibv_wc_status_str(wc.status));
	assert_int_equal(wc.opcode, opcode);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, op_context);
}

void ends_expect_received(struct rpma_conn *conn, size_t len, const void *op_context)
{
	struct ibv_wc wc = {0};

	ends_wait_wc(conn, &wc);
	if (wc.status != IBV_WC_SUCCESS)
		fail_msg("receive failed: %s", ibv_wc_status_str(wc.status));
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, len);
	assert_ptr_equal((void *)(uintptr_t)wc.wr_id, op_context);
}

void ends_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t offset, size_t len)
{
	OK(rpma_flush(conn, dst, offset, len, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS,
		      dst));
	ends_expect_wc(conn, ends_flush_opcode(), dst);
}

enum ibv_wc_status ends_wait_failure(struct rpma_conn *conn)
{
	struct ibv_wc wc = {0};

	do
		ends_wait_wc(conn, &wc);
	while (wc.status == IBV_WC_SUCCESS);
	return wc.status;
}
