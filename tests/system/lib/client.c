/* SPDX-License-Identifier: BSD-3-Clause */
#include "client.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "base/poll.h"

#define DESC_SIZE 21
#define ADDR      "127.0.0.1"
#define USAGE_ALL 0xff

int client_open(struct client *c, size_t size)
{
	struct ibv_context *ctx;
	int ret;

	memset(c, 0, sizeof(*c));
	c->buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->buf == MAP_FAILED)
		return RPMA_E_NOMEM;
	c->size = size;
	ret = rpma_utils_get_ibv_context(ADDR, RPMA_UTIL_IBV_CONTEXT_REMOTE, &ctx);
	if (!ret)
		ret = rpma_peer_new(ctx, &c->peer);
	if (!ret)
		ret = rpma_conn_cfg_new(&c->cfg);
	if (!ret)
		ret = rpma_mr_reg(c->peer, c->buf, size, USAGE_ALL, &c->mr);
	return ret;
}

void client_close(struct client *c)
{
	client_disconnect(c);
	rpma_mr_dereg(&c->mr);
	rpma_conn_cfg_delete(&c->cfg);
	rpma_peer_delete(&c->peer);
	if (c->size)
		munmap(c->buf, c->size);
	c->size = 0;
}

int client_wait_event(struct rpma_conn *conn, enum rpma_conn_event *event, int timeout_ms)
{
	int ret = rpma_conn_next_event_timeout(conn, timeout_ms, event);

	return ret == RPMA_E_NO_EVENT ? CLIENT_TIMEOUT : ret;
}

int client_wait_wc(struct rpma_cq *cq, struct ibv_wc *wc, int timeout_ms)
{
	uint64_t deadline = poll_deadline(timeout_ms);
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, wc, NULL)) == RPMA_E_NO_COMPLETION) {
		int left_ms = poll_ms_left(deadline);

		if (!left_ms)
			return CLIENT_TIMEOUT;
		ret = rpma_cq_wait_timeout(cq, left_ms);
		/* RPMA_E_NO_COMPLETION means a wake-up without a completion, or that the time limit
		 * has passed */
		if (ret && ret != RPMA_E_NO_COMPLETION)
			return ret;
	}
	return ret;
}

static int client_take_descriptors(struct client *c)
{
	struct rpma_conn_private_data pdata;
	int ret = rpma_conn_get_private_data(c->conn, &pdata);

	for (c->n_at = 0; !ret && (c->n_at + 1) * DESC_SIZE <= pdata.len; c->n_at++) {
		ret = rpma_mr_remote_from_descriptor((char *)pdata.ptr + c->n_at * DESC_SIZE,
						     DESC_SIZE, &c->at[c->n_at]);
		if (ret)
			break;
	}
	return ret;
}

int client_connect_as(struct client *c, const char *port, struct rpma_conn_req **req,
		      enum rpma_conn_event *event)
{
	int ret = rpma_conn_req_connect(req, NULL, &c->conn);

	if (!ret)
		ret = client_wait_event(c->conn, event, 2 * CLIENT_WAIT_MS);
	if (!ret && *event != RPMA_CONN_ESTABLISHED)
		ret = RPMA_E_PROVIDER;
	if (!ret)
		ret = rpma_conn_get_cq(c->conn, &c->cq);
	if (!ret)
		ret = client_take_descriptors(c);
	if (ret)
		client_drop(c);
	return ret;
}

int client_connect(struct client *c, const char *port, enum rpma_conn_event *event)
{
	enum rpma_conn_event ignored = RPMA_CONN_UNDEFINED;
	struct rpma_conn_req *req;
	int ret = rpma_conn_req_new(c->peer, ADDR, port, c->cfg, &req);

	return ret ? ret : client_connect_as(c, port, &req, event ? event : &ignored);
}

int client_begin(struct client *c, size_t size, const char *port)
{
	int ret = client_open(c, size);

	return ret ? ret : client_connect(c, port, NULL);
}

void client_drop(struct client *c)
{
	rpma_conn_delete(&c->conn);
	while (c->n_at > 0)
		rpma_mr_remote_delete(&c->at[--c->n_at]);
	c->cq = NULL;
}

void client_disconnect(struct client *c)
{
	enum rpma_conn_event event;

	if (c->conn && !rpma_conn_disconnect(c->conn))
		client_wait_event(c->conn, &event, CLIENT_WAIT_MS);
	client_drop(c);
}

static int client_outcome(struct client *c, int ret, struct ibv_wc *wc)
{
	struct ibv_wc own;

	if (!wc)
		wc = &own;
	if (!ret)
		ret = client_wait_wc(c->cq, wc, CLIENT_WAIT_MS);
	return !ret && wc->status != IBV_WC_SUCCESS ? RPMA_E_UNKNOWN : ret;
}

int client_write(struct client *c, int region, size_t at, size_t len, struct ibv_wc *wc)
{
	return client_outcome(c,
			      rpma_write(c->conn, c->at[region], at, c->mr, 0, len,
					 RPMA_F_COMPLETION_ALWAYS, NULL),
			      wc);
}

int client_read(struct client *c, int region, size_t at, size_t len, struct ibv_wc *wc)
{
	return client_outcome(c,
			      rpma_read(c->conn, c->mr, 0, c->at[region], at, len,
					RPMA_F_COMPLETION_ALWAYS, NULL),
			      wc);
}

int client_flush(struct client *c, int region, size_t at, size_t len, enum rpma_flush_type type,
		 struct ibv_wc *wc)
{
	return client_outcome(
		c,
		rpma_flush(c->conn, c->at[region], at, len, type, RPMA_F_COMPLETION_ALWAYS, NULL),
		wc);
}

int client_put(struct client *c, int region, size_t at, size_t len, struct ibv_wc *wc)
{
	int ret = rpma_write(c->conn, c->at[region], at, c->mr, 0, len, RPMA_F_COMPLETION_ON_ERROR,
			     NULL);

	return ret ? ret : client_flush(c, region, at, len, RPMA_FLUSH_TYPE_PERSISTENT, wc);
}

int client_post_write_and_flush(struct client *c, struct rpma_mr_remote *to, size_t at, size_t len)
{
	struct rpma_batch *batch;
	int ret = rpma_batch_new(c->conn, 2, &batch);

	if (ret)
		return ret;
	ret = rpma_batch_write(batch, to, at, c->mr, 0, len, RPMA_F_COMPLETION_ON_ERROR, NULL);
	if (!ret)
		ret = rpma_batch_flush(batch, c->at[0], 0, 8, RPMA_FLUSH_TYPE_VISIBILITY,
				       RPMA_F_COMPLETION_ALWAYS, NULL);
	if (!ret)
		ret = rpma_batch_post(batch);
	rpma_batch_delete(&batch);
	return ret;
}

int client_echo(struct client *c, size_t len)
{
	size_t half = c->size / 2;
	struct ibv_wc wc;
	int ret = rpma_recv(c->conn, c->mr, half, len, NULL);

	memset(c->buf + half, 0, len);
	if (!ret)
		ret = rpma_send(c->conn, c->mr, 0, len, RPMA_F_COMPLETION_ALWAYS, NULL);
	for (int i = 0; !ret && i < 2; i++)
		ret = client_outcome(c, 0, &wc);
	if (!ret && memcmp(c->buf, c->buf + half, len) != 0)
		ret = RPMA_E_UNKNOWN;
	return ret;
}
