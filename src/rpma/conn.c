/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.c -- creation, deletion and properties of a connection. */
#include "rpma/conn.h"

#include <stdlib.h>

#include "rpma/addr.h"
#include "rpma/err.h"
#include "rpma/peer_cfg.h"
#include "rpma/private_data.h"

static int conn_open(struct rpma_conn *conn, struct rpma_peer *peer, struct rdma_cm_id *id)
{
	int ret = flush_sink_get(peer, &conn->flush_sink);

	if (ret)
		return ret;
	conn->evch = peer->prov->create_event_channel();
	if (!conn->evch) {
		ret = PROVIDER_FAILED(errno, "%s", "rdma_create_event_channel()");
		goto sink_put;
	}
	if (peer->prov->migrate_id(id, conn->evch)) {
		ret = PROVIDER_FAILED(errno, "%s", "rdma_migrate_id()");
		goto channel_destroy;
	}
	return 0;

channel_destroy:
	peer->prov->destroy_event_channel(conn->evch);
sink_put:
	flush_sink_put(conn->flush_sink);
	return ret;
}

int conn_new(struct rpma_peer *peer, struct rdma_cm_id *id, struct queues *queues,
	     struct rpma_conn_private_data *pdata, struct rpma_conn **conn_ptr)
{
	struct rpma_conn *conn = calloc(1, sizeof(*conn));
	int ret;

	if (!conn)
		return err_set(RPMA_E_NOMEM, "there is no memory for a connection");
	ret = conn_open(conn, peer, id);
	if (ret) {
		free(conn);
		return ret;
	}
	conn->prov = peer->prov;
	conn->id = id;
	conn->queues = *queues;
	conn->pdata = *pdata;
	atomic_init(&conn->direct_write_to_pmem, false);
	*queues = (struct queues){0};
	*pdata = (struct rpma_conn_private_data){0};
	*conn_ptr = conn;
	return 0;
}

int rpma_conn_delete(struct rpma_conn **conn_ptr)
{
	struct rpma_conn *conn;
	int ret;

	if (!conn_ptr)
		return INVALID();
	conn = *conn_ptr;
	if (!conn)
		return 0;
	conn->prov->abandon(conn->id);
	ret = queues_fini(&conn->queues, conn->prov, conn->id);
	if (conn->prov->destroy_id(conn->id))
		ret = first_error(ret, PROVIDER_FAILED(errno, "%s", "rdma_destroy_id()"));
	ret = first_error(ret, flush_sink_put(conn->flush_sink));
	conn->prov->destroy_event_channel(conn->evch);
	private_data_fini(&conn->pdata);
	free(conn);
	*conn_ptr = NULL;
	return ret;
}

int rpma_conn_disconnect(struct rpma_conn *conn)
{
	if (!conn)
		return INVALID();
	LOG_NOTICE("Requesting for disconnection");
	if (conn->prov->disconnect(conn->id))
		return PROVIDER_FAILED(errno, "%s", "rdma_disconnect()");
	return 0;
}

int rpma_conn_cancel(struct rpma_conn *conn)
{
	int err;

	if (!conn)
		return INVALID();
	err = conn->prov->cancel_connect(conn->id);
	if (err == EOPNOTSUPP) {
		LOG_ERROR("the device cannot give up connecting; delete the connection instead");
		return RPMA_E_NOSUPP;
	}
	return err ? PROVIDER_FAILED(err, "%s", "cancel_connect()") : 0;
}

int rpma_conn_get_private_data(const struct rpma_conn *conn, struct rpma_conn_private_data *pdata)
{
	if (!conn || !pdata)
		return INVALID();
	*pdata = conn->pdata;
	return 0;
}

int rpma_conn_get_remote_addr(const struct rpma_conn *conn, char *addr, size_t size)
{
	if (!conn || !addr || !size)
		return INVALID();
	return addr_text(&conn->id->route.addr.dst_addr, addr, size);
}

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg)
{
	if (!conn || !pcfg)
		return INVALID();
	atomic_store(&conn->direct_write_to_pmem, atomic_load(&pcfg->direct_write_to_pmem));
	return 0;
}

int rpma_conn_get_qp_num(const struct rpma_conn *conn, uint32_t *qp_num)
{
	if (!conn || !qp_num)
		return INVALID();
	*qp_num = conn->id->qp->qp_num;
	return 0;
}

int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr)
{
	if (!conn || !cq_ptr)
		return INVALID();
	*cq_ptr = conn->queues.cq;
	return 0;
}

int rpma_conn_get_rcq(const struct rpma_conn *conn, struct rpma_cq **rcq_ptr)
{
	if (!conn || !rcq_ptr)
		return INVALID();
	*rcq_ptr = conn->queues.rcq;
	return 0;
}

int conn_not_shared(void)
{
	return err_set(RPMA_E_NOT_SHARED_CHNL,
		       "the connection has no shared completion channel: wait with rpma_cq_wait(), "
		       "or see rpma_conn_cfg_set_compl_channel()");
}

int rpma_conn_get_compl_fd(const struct rpma_conn *conn, int *fd)
{
	if (!conn || !fd)
		return INVALID();
	if (!conn->queues.shared_channel)
		return conn_not_shared();
	*fd = conn->queues.shared_channel->fd;
	return 0;
}
