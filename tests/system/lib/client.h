/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h -- an initiator on the public API, with a time limit on every wait.
 *
 * Functions return 0, a librpma error, or CLIENT_TIMEOUT. They do not assert, because some callers
 * are not test programs.
 */
#ifndef SYSTEM_CLIENT_H
#define SYSTEM_CLIENT_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#define CLIENT_TIMEOUT     1
#define CLIENT_WAIT_MS     10000
#define CLIENT_REGIONS_MAX 12 /* descriptors that fit into a reply's private data */

#define WC_FLUSH ((enum ibv_wc_opcode)8) /* rdma-core 44 has no name for this opcode */

struct client {
	struct rpma_peer *peer;
	struct rpma_conn_cfg *cfg;
	uint8_t *buf; /* memory of this end, registered with all rights */
	size_t size;
	struct rpma_mr_local *mr;

	struct rpma_conn *conn; /* NULL: the client is not connected */
	struct rpma_cq *cq;
	struct rpma_mr_remote *at[CLIENT_REGIONS_MAX]; /* the target's regions */
	int n_at;
};

/* Open the device, and make a buffer of this size. */
int client_open(struct client *c, size_t size);
void client_close(struct client *c);

/* Returns RPMA_E_PROVIDER if the outcome, which is in *event, is not ESTABLISHED. */
int client_connect(struct client *c, const char *port, enum rpma_conn_event *event);
/* Do both client_open() and client_connect(). */
int client_begin(struct client *c, size_t size, const char *port);
/* disconnects and deletes the connection, even if it was lost */
void client_disconnect(struct client *c);
void client_drop(struct client *c); /* deletes the connection without a disconnect */

/* Connect again with the client's peer object, and with queue sizes from cfg. */
int client_connect_as(struct client *c, const char *port, struct rpma_conn_req **req,
		      enum rpma_conn_event *event);

int client_wait_wc(struct rpma_cq *cq, struct ibv_wc *wc, int timeout_ms);
int client_wait_event(struct rpma_conn *conn, enum rpma_conn_event *event, int timeout_ms);

/*
 * Post one operation and take its completion. Returns 0 if it succeeded. If it failed, returns
 * RPMA_E_UNKNOWN, with the cause in *wc; wc may be NULL.
 */
int client_write(struct client *c, int region, size_t at, size_t len, struct ibv_wc *wc);
int client_read(struct client *c, int region, size_t at, size_t len, struct ibv_wc *wc);
int client_flush(struct client *c, int region, size_t at, size_t len, enum rpma_flush_type type,
		 struct ibv_wc *wc);
/* Post a write without a completion and a persistent flush, and take the completion of the
 * flush. */
int client_put(struct client *c, int region, size_t at, size_t len, struct ibv_wc *wc);
/* Post a write without a completion, to any memory, together with a flush of the first region. When
 * the target refuses the write, the flush has certainly been sent. */
int client_post_write_and_flush(struct client *c, struct rpma_mr_remote *to, size_t at, size_t len);
/* Send the first len bytes of the buffer, and receive the echo into the buffer's second half. */
int client_echo(struct client *c, size_t len);

#endif
