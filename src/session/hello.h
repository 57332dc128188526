/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.h -- what client and server send to each other before and after data moves: the codec of
 * the protocol of named regions.
 *
 * Little-endian. Request and reply are private data of the connection: the request stays below
 * the 56 bytes that InfiniBand's connection manager carries, the reply below its 196. A server
 * that refuses accepts, gives the reason in the reply and disconnects, since not every provider
 * delivers the private data of a reject.
 *
 * With a shared secret the reply to an acceptable request is HELLO_PROVE with the server's nonce;
 * then follow two messages: the client's proof and the server's grant, which is the reply that
 * it would have given otherwise, with the server's own proof behind it (secret.h).
 *
 * A client that has flushed what it wrote asks whether the region's file is still to be found under
 * its name; the server's verdict is an answer to that, or comes unasked, and ends the client's work
 * in either case. There is one for each connection.
 */
#ifndef SESSION_HELLO_H
#define SESSION_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <librpma.h>

#define HELLO_VERSION   3
#define HELLO_NAME_MAX  44
#define HELLO_DESC_MAX  32
#define HELLO_NONCE     32
#define HELLO_MAC       32
#define HELLO_ENTRY_MAX 32 /* regions of one server */

enum hello_access {
	HELLO_READ = 1,
	HELLO_WRITE = 2,
	HELLO_SCRATCH = 3, /* a page beside the region that ping may overwrite */
	HELLO_LIST = 4,    /* only to ask which regions there are */
};

enum hello_status {
	HELLO_OK,
	HELLO_BAD_VERSION,
	HELLO_NO_REGION,
	HELLO_BUSY,
	HELLO_BAD_REQUEST,
	HELLO_PROVE,         /* not a refusal: show that you know the secret */
	HELLO_SECRET_NEEDED, /* and the request offers none */
	HELLO_SECRET_UNUSED, /* the request offers one, the server has none */
	HELLO_SECRET_WRONG,
	HELLO_CHOOSE,       /* no region was named, and there are several */
	HELLO_BUSY_ADDRESS, /* this address has as many connections as it may */
	/* The region's file is not, or not whole, what its name leads to. */
	HELLO_FILE_REMOVED,
	HELLO_FILE_REPLACED,
	HELLO_FILE_TRUNCATED,
	HELLO_FILE_UNKNOWN, /* the server cannot find out at present */
	HELLO_STATUS_COUNT,
};

struct hello_request {
	uint8_t version;
	uint8_t access;
	bool has_secret;
	char region[HELLO_NAME_MAX + 1]; /* "" means: the one that you serve */
};

struct hello_reply {
	uint8_t version;
	uint8_t status;
	uint8_t durability; /* enum rpma_durability */
	uint64_t size;      /* of the memory behind the descriptor */
	char region[HELLO_NAME_MAX + 1];
	uint8_t pcfg_len, mr_len; /* 0 unless HELLO_OK */
	uint8_t pcfg[HELLO_DESC_MAX], mr[HELLO_DESC_MAX];
	uint8_t nonce[HELLO_NONCE]; /* with HELLO_PROVE */
};

/* From here on messages on the established connection. */
struct hello_proof {
	uint8_t nonce[HELLO_NONCE]; /* the client's */
	uint8_t mac[HELLO_MAC];
};

struct hello_grant {
	struct hello_reply reply;
	uint8_t mac[HELLO_MAC]; /* zeros with HELLO_SECRET_WRONG */
};

struct hello_entry {
	char region[HELLO_NAME_MAX + 1];
	uint64_t size;
	uint8_t durability;
};

/* The answer to an ask, which is a message without content. */
struct hello_list {
	uint8_t count;
	struct hello_entry entries[HELLO_ENTRY_MAX];
};

enum hello_type {
	HELLO_TYPE_PROOF = 1,
	HELLO_TYPE_GRANT,
	HELLO_TYPE_ASK,
	HELLO_TYPE_LIST,
	HELLO_TYPE_CONFIRM,
	HELLO_TYPE_VERDICT,
};

#define HELLO_MAX      160                               /* a request or reply */
#define HELLO_TO_MAX   (5 + HELLO_NONCE + HELLO_MAC)     /* a message to the server */
#define HELLO_FROM_MAX (6 + HELLO_ENTRY_MAX * (10 + 44)) /* and from it */
#define HELLO_VERDICT  6                                 /* one of these */

/* Bytes written to buf[HELLO_MAX]. */
size_t hello_request_encode(const struct hello_request *req, uint8_t *buf);
size_t hello_reply_encode(const struct hello_reply *reply, uint8_t *buf);
/* False: not our protocol. A longer buffer is accepted: InfiniBand pads. */
bool hello_request_decode(const struct rpma_conn_private_data *pdata, struct hello_request *req);
bool hello_reply_decode(const struct rpma_conn_private_data *pdata, struct hello_reply *reply);

/* Bytes written to buf[HELLO_TO_MAX], or to buf[HELLO_FROM_MAX] by the server's. */
size_t hello_proof_encode(const struct hello_proof *proof, uint8_t *buf);
size_t hello_grant_encode(const struct hello_grant *grant, uint8_t *buf);
size_t hello_ask_encode(uint8_t *buf);
size_t hello_list_encode(const struct hello_list *list, uint8_t *buf);
size_t hello_confirm_encode(uint8_t *buf);
/* To buf[HELLO_VERDICT]. */
size_t hello_verdict_encode(enum hello_status status, uint8_t *buf);
/* False: something else. Not a byte may be missing or too many. */
bool hello_proof_decode(const uint8_t *buf, size_t len, struct hello_proof *proof);
bool hello_grant_decode(const uint8_t *buf, size_t len, struct hello_grant *grant);
bool hello_ask_decode(const uint8_t *buf, size_t len);
bool hello_list_decode(const uint8_t *buf, size_t len, struct hello_list *list);
bool hello_confirm_decode(const uint8_t *buf, size_t len);
bool hello_verdict_decode(const uint8_t *buf, size_t len, enum hello_status *status);

#endif
