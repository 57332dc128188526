/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.h -- what client and server say to each other in the private data of the connection.
 *
 * Little-endian. The request stays below the 56 bytes that InfiniBand's connection manager
 * carries, the reply below its 196. A reject carries no data in librpma 1.0, therefore the
 * server accepts, gives the reason here and disconnects.
 */
#ifndef TOOL_HELLO_H
#define TOOL_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <librpma.h>

#define HELLO_VERSION  1
#define HELLO_NAME_MAX 44
#define HELLO_DESC_MAX 32

enum hello_access {
	HELLO_READ = 1,
	HELLO_WRITE = 2,
	HELLO_SCRATCH = 3, /* a page beside the region that ping may overwrite */
};

enum hello_status {
	HELLO_OK,
	HELLO_BAD_VERSION,
	HELLO_NO_REGION,
	HELLO_BUSY,
	HELLO_BAD_REQUEST,
};

/* The durability class of the region's memory. */
enum hello_class {
	HELLO_VOLATILE,
	HELLO_FILE,
	HELLO_DAX,
};

struct hello_request {
	uint8_t version;
	uint8_t access;
	char region[HELLO_NAME_MAX + 1]; /* "" means: whatever you serve */
};

struct hello_reply {
	uint8_t version;
	uint8_t status;
	uint8_t durability;
	uint64_t size; /* of the memory behind the descriptor */
	char region[HELLO_NAME_MAX + 1];
	uint8_t pcfg_len, mr_len; /* 0 unless HELLO_OK */
	uint8_t pcfg[HELLO_DESC_MAX], mr[HELLO_DESC_MAX];
};

#define HELLO_MAX 160

/* Bytes written to buf[HELLO_MAX]. */
size_t hello_request_encode(const struct hello_request *req, uint8_t *buf);
size_t hello_reply_encode(const struct hello_reply *reply, uint8_t *buf);
/* False: not our protocol. A longer buffer is accepted: InfiniBand pads. */
bool hello_request_decode(const struct rpma_conn_private_data *pdata, struct hello_request *req);
bool hello_reply_decode(const struct rpma_conn_private_data *pdata, struct hello_reply *reply);
const char *hello_class_name(uint8_t durability);

#endif
