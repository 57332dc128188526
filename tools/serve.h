/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve.h -- the server: its options, what it exports, and one object a client.
 */
#ifndef TOOL_SERVE_H
#define TOOL_SERVE_H

#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "hello.h"
#include "mapfile.h"

#define SERVE_SCRATCH (1u << 20)
/* Refused clients that are being told why; those beyond are rejected without a word. */
#define SERVE_REFUSED_MAX 64

struct serve_opts {
	struct mapfile_wish file;
	struct address listen;
	char region[HELLO_NAME_MAX + 1];
	uint64_t max_clients;
	bool allow_volatile;
	bool json, verbose;
};

/* Memory under an hello_access: what a client may do is what the registration permits. */
struct serve_export {
	struct rpma_mr_local *mr;
	uint64_t size;
	uint8_t desc[HELLO_DESC_MAX];
	uint8_t desc_len;
};

struct serve {
	const struct serve_opts *opts;
	struct mapfile data, scratch;
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct serve_export exports[HELLO_SCRATCH + 1]; /* by hello_access */
	uint8_t pcfg[HELLO_DESC_MAX];
	uint8_t pcfg_len;
	int epoll_fd;
	unsigned clients, refused; /* served; being told why not */
	uint64_t next_id;
	struct serve_client *first;
};

struct serve_client {
	struct serve_client *next;
	struct rpma_conn *conn;
	int event_fd;
	uint64_t id;
	bool refused; /* has been told why; disconnect as soon as it has arrived */
};

/* serve_export.c: register the memory, describe it. Print their own error lines. */
int serve_export_all(struct serve *s, struct ibv_context *context);
void serve_unexport_all(struct serve *s);

/* serve_client.c: take one pending request; act on one event of a client. */
void serve_on_request(struct serve *s);
void serve_on_event(struct serve *s, struct serve_client *client);
void serve_drop_all(struct serve *s);

/* serve_opts.c: as copy_parse. */
int serve_parse(int argc, char **argv, struct serve_opts *opts);

#endif
